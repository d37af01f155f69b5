//! How the classes are declared.

use pyo3::PyClass;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

/// The longest piece of one attribute that a repr shows, in characters.
const REPR_PIECE: usize = 120;

/// The repr of an object: its class and its attributes, long ones cut.
pub(crate) fn repr(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let class = object.get_type();
    let mut text = format!("{}(", class.name()?.to_string_lossy());
    let names = class.getattr("__match_args__")?;
    for (index, name) in names.try_iter()?.enumerate() {
        let name = name?.cast_into::<PyString>()?;
        let value = object.getattr(&name)?.repr()?.to_string_lossy().into_owned();
        if index > 0 {
            text.push_str(", ");
        }
        text.push_str(&name.to_string_lossy());
        text.push('=');
        match value.char_indices().nth(REPR_PIECE) {
            Some((end, _)) => {
                text.push_str(&value[..end]);
                text.push('…');
            }
            None => text.push_str(&value),
        }
    }
    text.push(')');
    Ok(text)
}

/// An object whose class is not that of its value, which its makers do not allow.
pub(crate) fn mismatch() -> PyErr {
    PyTypeError::new_err("the object holds a value of another kind")
}

/// The value that an object of this class holds, its base classes included.
pub(crate) trait Holds: PyClass {
    type Value;

    fn held<'a>(object: &'a Bound<'_, Self>) -> PyResult<&'a Self::Value>;

    /// One attribute that is worth keeping once it was made. Always immutable, so that it can hold no way
    /// back to its object.
    fn made<'a>(object: &'a Bound<'_, Self>) -> &'a PyOnceLock<Py<PyAny>>;
}

/// Declares the base class of a family: it holds the value and has everything that the kinds share.
macro_rules! family {
    ($(#[$doc:meta])* $base:ident($held:ty) of $value:ty, built by $build:path { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, subclass, module = "sampi")]
        pub(crate) struct $base {
            value: $held,
            made: PyOnceLock<Py<PyAny>>,
        }

        impl $base {
            pub(super) fn new(value: $held) -> Self {
                Self { value, made: PyOnceLock::new() }
            }
        }

        #[pymethods]
        impl $base {
            #[classattr]
            fn __match_args__(py: Python<'_>) -> Py<pyo3::types::PyTuple> {
                pyo3::types::PyTuple::empty(py).unbind()
            }

            /// The value as the daemon writes it: plain dicts, lists and strings.
            fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                loads(py, &to_json(&*self.value)?)
            }

            /// Makes the object of what `raw()` gives.
            #[staticmethod]
            fn from_raw<'py>(raw: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let text = to_json(&crate::convert::from_python(raw)?)?;
                $build(raw.py(), &<$held>::from(from_json::<$value>(&text)?))
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, String))> {
                Ok((py.import("sampi._native")?.getattr("_rebuild")?, (stringify!($base), to_json(&*self.value)?)))
            }

            fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> Py<PyAny> {
                let py = slf.py();
                match other.cast::<Self>() {
                    Ok(other) => {
                        let equal = *slf.get().value == *other.get().value;
                        pyo3::types::PyBool::new(py, equal).to_owned().into_any().unbind()
                    }
                    Err(_) => py.NotImplemented(),
                }
            }

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                repr(slf.as_any())
            }

            $($methods)*
        }

        impl Holds for $base {
            type Value = $value;

            fn held<'a>(object: &'a Bound<'_, Self>) -> PyResult<&'a $value> {
                Ok(&object.get().value)
            }

            fn made<'a>(object: &'a Bound<'_, Self>) -> &'a PyOnceLock<Py<PyAny>> {
                &object.get().made
            }
        }
    };
}

/// Declares the kinds of a family, each with its pattern and its attributes. The attribute after a semicolon
/// is kept once it was made. A kind that is neither declared nor left to the
/// base class does not compile.
macro_rules! kinds {
    ($base:ident $(, $otherwise:pat => base)?; $(
        $(#[$doc:meta])*
        $class:ident: $pattern:pat => {
            $( $(#[$field_doc:meta])* $field:ident = $expr:expr, )*
            $( ; $(#[$lazy_doc:meta])* $lazy:ident = $lazy_expr:expr )?
        }
    )+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, extends = $base, module = "sampi")]
            pub(crate) struct $class;

            #[pymethods]
            impl $class {
                #[classattr]
                fn __match_args__(py: Python<'_>) -> PyResult<Py<pyo3::types::PyTuple>> {
                    let names: &[&str] = &[$(stringify!($lazy),)? $(stringify!($field),)*];
                    Ok(pyo3::types::PyTuple::new(py, names)?.unbind())
                }

                $(
                    $(#[$field_doc])*
                    #[getter]
                    #[allow(unused_variables, unreachable_patterns)]
                    fn $field<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                        match <$base as Holds>::held(slf.as_super())? {
                            $pattern => ToPy::to_py(&($expr), slf.py()),
                            _ => Err(mismatch()),
                        }
                    }
                )*

                $(
                    $(#[$lazy_doc])*
                    #[getter]
                    #[allow(unreachable_patterns)]
                    fn $lazy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                        let py = slf.py();
                        let made = <$base as Holds>::made(slf.as_super()).get_or_try_init(py, || {
                            match <$base as Holds>::held(slf.as_super())? {
                                $pattern => ToPy::to_py(&($lazy_expr), py).map(Bound::unbind),
                                _ => Err(mismatch()),
                            }
                        })?;
                        Ok(made.bind(py).clone())
                    }
                )?
            }
        )+

        /// Makes the object of a value whose base part is at hand.
        #[allow(unused_variables, unreachable_patterns)]
        fn build_kind<'py>(
            py: Python<'py>,
            value: &<$base as Holds>::Value,
            base: PyClassInitializer<$base>,
        ) -> PyResult<Bound<'py, PyAny>> {
            match value {
                $($pattern => Ok(Bound::new(py, base.add_subclass($class))?.into_any()),)+
                $($otherwise => Ok(Bound::new(py, base)?.into_any()),)?
            }
        }

        pub(super) fn register_kinds(module: &Bound<'_, PyModule>) -> PyResult<()> {
            module.add_class::<$base>()?;
            $(module.add_class::<$class>()?;)+
            Ok(())
        }
    };
}

/// Declares classes of plain results.
macro_rules! records {
    ($(
        $(#[$doc:meta])*
        $class:ident($v:ident: $value:ty) {
            $( $(#[$field_doc:meta])* $field:ident = $expr:expr, )*
        }
    )+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, module = "sampi")]
            pub(crate) struct $class {
                value: Arc<$value>,
            }

            #[pymethods]
            impl $class {
                #[classattr]
                fn __match_args__(py: Python<'_>) -> PyResult<Py<pyo3::types::PyTuple>> {
                    let names: &[&str] = &[$(stringify!($field),)*];
                    Ok(pyo3::types::PyTuple::new(py, names)?.unbind())
                }

                $(
                    $(#[$field_doc])*
                    #[getter]
                    fn $field<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                        let $v = &*self.value;
                        ToPy::to_py(&($expr), py)
                    }
                )*

                /// The value as the daemon writes it: plain dicts, lists and strings.
                fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    loads(py, &to_json(&*self.value)?)
                }

                /// Makes the object of what `raw()` gives.
                #[staticmethod]
                fn from_raw(raw: &Bound<'_, PyAny>) -> PyResult<Self> {
                    let text = to_json(&crate::convert::from_python(raw)?)?;
                    Ok(Self { value: Arc::new(from_json(&text)?) })
                }

                fn __reduce__<'py>(
                    &self,
                    py: Python<'py>,
                ) -> PyResult<(Bound<'py, PyAny>, (&'static str, String))> {
                    let rebuild = py.import("sampi._native")?.getattr("_rebuild")?;
                    Ok((rebuild, (stringify!($class), to_json(&*self.value)?)))
                }

                fn __eq__(&self, other: &Bound<'_, PyAny>) -> Py<PyAny> {
                    let py = other.py();
                    match other.cast::<Self>() {
                        Ok(other) => {
                            let equal = *self.value == *other.get().value;
                            pyo3::types::PyBool::new(py, equal).to_owned().into_any().unbind()
                        }
                        Err(_) => py.NotImplemented(),
                    }
                }

                fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                    repr(slf.as_any())
                }
            }

            impl ToPy for $value {
                fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    Ok(Bound::new(py, $class { value: Arc::new(self.clone()) })?.into_any())
                }
            }
        )+

        /// Makes the object of this class from its JSON text; `None` when there is no such class.
        pub(super) fn rebuild_record<'py>(
            py: Python<'py>,
            class: &str,
            text: &str,
        ) -> Option<PyResult<Bound<'py, PyAny>>> {
            match class {
                $(stringify!($class) => Some(from_json::<$value>(text).and_then(|value| value.to_py(py))),)+
                _ => None,
            }
        }

        pub(super) fn register_records(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$class>()?;)+
            Ok(())
        }
    };
}

pub(crate) use {family, kinds, records};
