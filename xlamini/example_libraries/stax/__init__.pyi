# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.example_libraries.stax.aliases import glorot as glorot, logsoftmax as logsoftmax, randn as randn
from xlamini.example_libraries.stax.composition import (
    FanInConcat as FanInConcat, FanInSum as FanInSum, FanOut as FanOut, parallel as parallel, serial as serial,
    shape_dependent as shape_dependent,
)
from xlamini.example_libraries.stax.convolutions import (
    Conv as Conv, Conv1DTranspose as Conv1DTranspose, ConvTranspose as ConvTranspose, GeneralConv as GeneralConv,
    GeneralConvTranspose as GeneralConvTranspose,
)
from xlamini.example_libraries.stax.elementwise_layers import (
    Dropout as Dropout, Elu as Elu, Exp as Exp, Flatten as Flatten, Gelu as Gelu, Identity as Identity,
    LeakyRelu as LeakyRelu, LogSoftmax as LogSoftmax, Relu as Relu, Selu as Selu, Sigmoid as Sigmoid,
    Softmax as Softmax, Softplus as Softplus, Tanh as Tanh, elementwise as elementwise,
)
from xlamini.example_libraries.stax.linear import Dense as Dense
from xlamini.example_libraries.stax.normalization import BatchNorm as BatchNorm
from xlamini.example_libraries.stax.pooling import AvgPool as AvgPool, MaxPool as MaxPool, SumPool as SumPool
from xlamini.nn.activations import (
    elu as elu, gelu as gelu, leaky_relu as leaky_relu, relu as relu, selu as selu, sigmoid as sigmoid,
    softplus as softplus,
)
from xlamini.nn.encoding import standardize as standardize
from xlamini.nn.initializers import glorot_normal as glorot_normal, normal as normal, ones as ones, zeros as zeros
from xlamini.nn.softmax import log_softmax as log_softmax, softmax as softmax
