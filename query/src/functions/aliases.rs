//! Names that other databases have for functions of the engine.

use datafusion::functions::math::signum;
use datafusion::functions_aggregate::variance::var_samp_udaf;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

/// Returns `signum`, which is also called `sign`.
pub fn sign() -> ScalarUDF {
    signum().as_ref().clone().with_aliases(["sign"])
}

/// Returns `var`, the variance of a sample, which is also called `variance`.
pub fn variance() -> AggregateUDF {
    let function = var_samp_udaf();
    function.as_ref().clone().with_aliases(["variance"])
}
