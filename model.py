
import gt4py.next as gtx
import numpy as np

I = gtx.Dimension("I")
Edge = gtx.Dimension("Edge")
I2EDim = gtx.Dimension("I2E", kind=gtx.DimensionKind.LOCAL)
I2E = gtx.FieldOffset("I2E", source=Edge, target=(I, I2EDim))
Line = gtx.Field[gtx.Dims[I], gtx.float64]

@gtx.field_operator
def _gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64) -> Line:
    return factor * a(I2E[0])

@gtx.program
def gather(a: gtx.Field[gtx.Dims[Edge], gtx.float64], factor: gtx.float64, out: Line):
    _gather(a, factor, out=out)

def make_offset_provider():
    return {"I2E": gtx.as_connectivity([I, I2EDim], Edge, np.zeros((3, 2), dtype=np.int32))}
