//! The module `sampi._native`: the Rust client of agent daemons, as the Python package `sampi` uses it.
//!
//! What holds here: no thread of the runtime ever attaches to the interpreter, so that nothing of this
//! module runs while Python ends. What Python must hear of waits in a queue; a Python thread fetches it,
//! either by blocking with the interpreter released ([`wait`]) or, under asyncio, when a byte on a socket
//! wakes its event loop ([`bridge`]).

use pyo3::prelude::*;

mod bridge;
mod call;
mod callbacks;
mod classes;
mod commands;
mod convert;
mod core;
mod errors;
mod stream;
mod wait;

/// Registers everything.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<core::Core>()?;
    module.add_class::<call::Call>()?;
    module.add_class::<stream::EventStream>()?;
    module.add_class::<callbacks::Callbacks>()?;
    module.add_class::<callbacks::PendingDialog>()?;
    module.add_class::<bridge::Bridge>()?;
    module.add_class::<bridge::Wait>()?;
    classes::register(module)?;
    module.add_function(wrap_pyfunction!(wait::shut_down, module)?)?;
    module.add_function(wrap_pyfunction!(classes::rebuild, module)?)?;
    module.add("COMMANDS", sampi_client::protocol::commands::Command::NAMES.to_vec())?;
    module.add("PI_VERSION", sampi_client::protocol::PI_VERSION)?;
    Ok(())
}
