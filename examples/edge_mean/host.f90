! Calls the gt4py program edge_mean on 4 vertices, 3 edges and 2 levels: host FOLDER, where the stub lies.
program host
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
    use gtstub, only: gts_close, gts_open, gts_program, gts_set_index_base
    use edge_mean_stub, only: edge_mean
    implicit none
    type(gts_program) :: program
    real(c_double) :: x(4, 2), padded(5, 2)
    integer(c_int32_t) :: edge_vertices(3, 2)
    integer :: stat
    character(len=1000) :: folder, errmsg

    call get_command_argument(1, folder)
    call gts_open(trim(folder), program) ! without stat an error stops the host
    call gts_set_index_base(program, 'E2V', 1) ! the vertices are numbered from 1

    x = reshape(real([1, 2, 3, 4, 10, 20, 30, 40], c_double), shape(x))
    edge_vertices = reshape([1, 2, 3, 2, 3, 4], shape(edge_vertices))
    call edge_mean(program, x, 0.5_c_double, padded(2:4, :), edge_vertices, stat, errmsg)
    if (stat /= 0) error stop trim(errmsg)
    print '(6f6.1)', padded(2:4, :)

    call gts_close(program)
end program
