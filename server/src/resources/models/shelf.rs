//! The models of one provider, read from its table when they are first asked for.

use std::borrow::Cow;
use std::sync::OnceLock;

use sampi_protocol::data::Model;

use super::catalogue;

/// A provider and its models.
pub(super) struct Shelf {
    pub(super) provider: Cow<'static, str>,
    /// The provider's table, for one that comes with the program.
    table: Option<&'static str>,
    models: OnceLock<Vec<Model>>,
}

impl Shelf {
    /// The shelves of the providers that come with the program. Reads no table.
    pub(super) fn builtin() -> Vec<Self> {
        let shelf = |&(provider, table): &(&'static str, &'static str)| Self {
            provider: Cow::Borrowed(provider),
            table: Some(table),
            models: OnceLock::new(),
        };
        catalogue::TABLES.iter().map(shelf).collect()
    }

    /// The shelf of a provider, put up empty if there is none.
    pub(super) fn of<'s>(shelves: &'s mut Vec<Self>, provider: &str) -> &'s mut Self {
        let at = shelves.iter().position(|shelf| shelf.provider == provider).unwrap_or_else(|| {
            shelves.push(Self {
                provider: Cow::Owned(provider.to_owned()),
                table: None,
                models: OnceLock::from(Vec::new()),
            });
            shelves.len() - 1
        });
        &mut shelves[at]
    }

    /// The models. `variable` gives the value of a variable that stands in a base URL.
    pub(super) fn models<'v>(&self, variable: impl Fn(&str) -> Option<&'v str>) -> &[Model] {
        self.models.get_or_init(|| self.read(variable))
    }

    /// Changes the models.
    pub(super) fn change<'v>(
        &mut self,
        variable: impl Fn(&str) -> Option<&'v str>,
        change: impl FnOnce(&mut Vec<Model>),
    ) {
        let mut models = self.models.take().unwrap_or_else(|| self.read(variable));
        change(&mut models);
        self.models = OnceLock::from(models);
    }

    /// False when no model can have the text in its id or name, known without reading the table.
    pub(super) fn may_have(&self, text: &str) -> bool {
        match self.table {
            Some(table) if self.models.get().is_none() => catalogue::may_have(table, text),
            _ => true,
        }
    }

    /// True once the models were asked for.
    #[cfg(test)]
    pub(super) fn is_read(&self) -> bool {
        self.models.get().is_some()
    }

    fn read<'v>(&self, variable: impl Fn(&str) -> Option<&'v str>) -> Vec<Model> {
        let mut models = self.table.map(|table| catalogue::read(&self.provider, table)).unwrap_or_default();
        for name in catalogue::required_variables(&self.provider) {
            let Some(value) = variable(name) else { continue };
            for model in &mut models {
                model.base_url = model.base_url.replace(&format!("{{{name}}}"), value);
            }
        }
        models
    }
}
