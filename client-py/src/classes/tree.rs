//! The session as a tree. It may be as deep as the session is long, so nothing here recurses.

use std::sync::Arc;

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};
use sampi_client::protocol::Shared;

use crate::convert::{ToPy, loads, to_json};

/// The session as a tree of entries.
#[pyclass(frozen, module = "sampi")]
pub(crate) struct SessionTree {
    tree: Arc<sampi_client::SessionTree>,
}

impl ToPy for sampi_client::SessionTree {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, SessionTree { tree: Arc::new(self.clone()) })?.into_any())
    }
}

#[pymethods]
impl SessionTree {
    fn __len__(&self) -> usize {
        self.tree.len()
    }

    /// The id of the entry at which the active branch ends; `None` in an empty session.
    #[getter]
    fn leaf_id(&self) -> Option<&str> {
        self.tree.leaf_id().map(|id| id.as_str())
    }

    /// All nodes, each parent before its children.
    #[getter]
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, (0..self.tree.len()).map(|index| self.at(index)).collect::<Vec<_>>())
    }

    /// The nodes without a parent.
    #[getter]
    fn roots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tree.roots().map(|node| self.at(node.index())).collect::<Vec<_>>())
    }

    /// The node at which the active branch ends; `None` in an empty session.
    #[getter]
    fn leaf(&self) -> Option<TreeNode> {
        self.find(self.tree.leaf_id()?.as_str())
    }

    /// The node of this entry; `None` when there is no such entry.
    fn find(&self, entry_id: &str) -> Option<TreeNode> {
        self.tree.find(entry_id).map(|node| self.at(node.index()))
    }

    /// The tree as the daemon writes it, plain dicts and lists. For a long session these are nested deeper
    /// than `json.dumps` or `copy.deepcopy` can follow.
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let roots = PyList::empty(py);
        let mut lists: Vec<Bound<'py, PyList>> = Vec::with_capacity(self.tree.len());
        for node in self.tree.nodes() {
            let children = PyList::empty(py);
            let dict = PyDict::new(py);
            dict.set_item("entry", loads(py, node.entry_text())?)?;
            dict.set_item("children", &children)?;
            if let Some(label) = node.label() {
                dict.set_item("label", label)?;
            }
            if let Some(timestamp) = node.label_timestamp() {
                dict.set_item("labelTimestamp", timestamp)?;
            }
            let siblings = node.parent().and_then(|parent| lists.get(parent.index()));
            siblings.unwrap_or(&roots).append(dict)?;
            lists.push(children);
        }
        let tree = PyDict::new(py);
        tree.set_item("tree", roots)?;
        tree.set_item("leafId", self.leaf_id())?;
        Ok(tree)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&'static str, String))> {
        Ok((py.import("sampi._native")?.getattr("_rebuild")?, ("SessionTree", text(&self.tree)?)))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => {
                let equal = text(&self.tree)? == text(&other.get().tree)?;
                Ok(PyBool::new(py, equal).to_owned().into_any().unbind())
            }
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __repr__(&self) -> String {
        let leaf = self.leaf_id().map_or("None".to_owned(), |id| format!("{id:?}"));
        format!("SessionTree(<{} entries>, leaf_id={leaf})", self.tree.len())
    }
}

impl SessionTree {
    fn at(&self, index: usize) -> TreeNode {
        TreeNode { tree: Arc::clone(&self.tree), index }
    }
}

/// The tree's JSON text, written without recursion.
fn text(tree: &sampi_client::SessionTree) -> PyResult<String> {
    enum Step {
        Open(usize),
        Text(&'static str),
    }
    let mut out = String::from(r#"{"tree":["#);
    let mut steps: Vec<Step> = Vec::new();
    let push_all = |steps: &mut Vec<Step>, nodes: Vec<usize>| {
        for (place, index) in nodes.iter().enumerate().rev() {
            steps.push(Step::Open(*index));
            if place > 0 {
                steps.push(Step::Text(","));
            }
        }
    };
    push_all(&mut steps, tree.roots().map(|node| node.index()).collect());
    while let Some(step) = steps.pop() {
        let index = match step {
            Step::Text(text) => {
                out.push_str(text);
                continue;
            }
            Step::Open(index) => index,
        };
        let Some(node) = tree.node(index) else { continue };
        out.push_str(r#"{"entry":"#);
        out.push_str(node.entry_text());
        if let Some(label) = node.label() {
            out.push_str(r#","label":"#);
            out.push_str(&to_json(label)?);
        }
        if let Some(timestamp) = node.label_timestamp() {
            out.push_str(r#","labelTimestamp":"#);
            out.push_str(&to_json(timestamp)?);
        }
        out.push_str(r#","children":["#);
        steps.push(Step::Text("]}"));
        push_all(&mut steps, node.children().map(|node| node.index()).collect());
    }
    out.push_str(r#"],"leafId":"#);
    out.push_str(&to_json(&tree.leaf_id())?);
    out.push('}');
    Ok(out)
}

/// Reads a tree from its JSON text.
pub(super) fn rebuild_tree<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    sampi_client::SessionTree::read(text)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?
        .to_py(py)
}

/// One node of a `SessionTree`.
#[pyclass(frozen, module = "sampi")]
pub(crate) struct TreeNode {
    tree: Arc<sampi_client::SessionTree>,
    index: usize,
}

#[pymethods]
impl TreeNode {
    #[classattr]
    fn __match_args__() -> (&'static str, &'static str) {
        ("entry", "label")
    }

    /// The entry, decoded when it is asked for.
    #[getter]
    fn entry<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let entry = self
            .node()?
            .entry()
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        Shared::new(entry).to_py(py)
    }

    /// The user's mark on the entry.
    #[getter]
    fn label(&self) -> PyResult<Option<&str>> {
        Ok(self.node()?.label())
    }

    /// When the mark was set, ISO 8601.
    #[getter]
    fn label_timestamp(&self) -> PyResult<Option<&str>> {
        Ok(self.node()?.label_timestamp())
    }

    /// The node that this one continues; `None` at a root.
    #[getter]
    fn parent(&self) -> PyResult<Option<TreeNode>> {
        Ok(self.node()?.parent().map(|node| self.at(node.index())))
    }

    /// The nodes that continue this one.
    #[getter]
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.node()?.children().map(|node| self.at(node.index())).collect::<Vec<_>>())
    }

    /// This node, its parent, and so on up to a root.
    #[getter]
    fn ancestors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.node()?.ancestors().map(|node| self.at(node.index())).collect::<Vec<_>>())
    }

    /// The entry as the daemon writes it.
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.node()?.entry_text())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> Py<PyAny> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => {
                let other = other.get();
                let equal = Arc::ptr_eq(&self.tree, &other.tree) && self.index == other.index;
                PyBool::new(py, equal).to_owned().into_any().unbind()
            }
            Err(_) => py.NotImplemented(),
        }
    }

    fn __repr__(&self) -> PyResult<String> {
        let node = self.node()?;
        let id = node.entry_id().map(|id| id.to_string()).unwrap_or_default();
        let label = node.label().map_or("None".to_owned(), |label| format!("{label:?}"));
        Ok(format!("TreeNode(<entry {id}>, label={label})"))
    }
}

impl TreeNode {
    fn node(&self) -> PyResult<sampi_client::TreeNode<'_>> {
        self.tree.node(self.index).ok_or_else(|| PyIndexError::new_err("no such node"))
    }

    fn at(&self, index: usize) -> Self {
        Self { tree: Arc::clone(&self.tree), index }
    }
}
