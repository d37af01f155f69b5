//! Which tools there are.

use std::sync::Arc;

use super::{BashTool, EditTool, FindTool, GrepTool, LsTool, ReadTool, Tool, WriteTool};

/// Tools by name, in a fixed order.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolSet {
    /// The tools that are part of the daemon.
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 7] = [
            Arc::new(ReadTool::default()),
            Arc::new(BashTool::default()),
            Arc::new(EditTool::default()),
            Arc::new(WriteTool::default()),
            Arc::new(GrepTool::default()),
            Arc::new(FindTool::default()),
            Arc::new(LsTool::default()),
        ];
        Self { tools: tools.into() }
    }

    /// Adds a tool; one of the same name gives way, in its place.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.definition().name;
        match self.tools.iter_mut().find(|known| known.definition().name == *name) {
            Some(known) => *known = tool,
            None => self.tools.push(tool),
        }
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.definition().name == name)
    }

    /// All tools.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|tool| &tool.definition().name)).finish()
    }
}
