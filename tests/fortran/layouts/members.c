/* Prints what ISO_Fortran_binding.h says of the members that gtstub reads. */
#include <ISO_Fortran_binding.h>
#include <stdio.h>

#define PLACE(type, member) printf(#member " %zu %zu\n", offsetof(type, member), sizeof(((type *)NULL)->member))
#define NUMBER(name) printf(#name " %lld\n", (long long)(name))

int main(void)
{
    PLACE(CFI_cdesc_t, base_addr);
    PLACE(CFI_cdesc_t, elem_len);
    PLACE(CFI_cdesc_t, version);
    PLACE(CFI_cdesc_t, rank);
    PLACE(CFI_cdesc_t, type);
    PLACE(CFI_cdesc_t, attribute);
    printf("dim %zu %zu\n", offsetof(CFI_cdesc_t, dim), sizeof(CFI_dim_t));
    PLACE(CFI_dim_t, lower_bound);
    PLACE(CFI_dim_t, extent);
    PLACE(CFI_dim_t, sm);
    NUMBER(CFI_VERSION);
    NUMBER(CFI_type_int8_t);
    NUMBER(CFI_type_int16_t);
    NUMBER(CFI_type_int32_t);
    NUMBER(CFI_type_int64_t);
    NUMBER(CFI_type_float);
    NUMBER(CFI_type_double);
    NUMBER(CFI_type_float_Complex);
    NUMBER(CFI_type_double_Complex);
    NUMBER(CFI_type_Bool);
    NUMBER(CFI_type_char);
    NUMBER(CFI_type_other < 0);
    NUMBER(CFI_attribute_other);
    return 0;
}
