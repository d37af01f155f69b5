//! Commands by name, with their typed results.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sampi_client::protocol::commands::*;
use sampi_client::protocol::wire;
use sampi_client::{Call, ClientError, RpcClient};
use serde_json::Value;

use crate::call::AnswerFuture;
use crate::convert::{Answer, ToPy};
use crate::errors::Failure;

macro_rules! by_name {
    ($client:ident, $name:ident, $parameters:ident, $timeout:ident; $($command:ident)*) => {
        match $name {
            $(<$command as RpcCommand>::NAME => typed::<$command>($client, $parameters, $timeout),)*
            // Its reply may be nested too deeply for the typed way.
            GetTree::NAME => Ok(answer($client.get_tree_with($parameters), $timeout)),
            _ => Ok(answer($client.call_raw($name, $parameters), $timeout)),
        }
    };
}

/// A call by the command's wire name. A wrong parameter is a `ValueError` that names it; what the table does
/// not know, a parameter or a command, is sent as it is.
pub(crate) fn call(
    client: &RpcClient,
    name: &str,
    parameters: Value,
    timeout: Option<Duration>,
) -> PyResult<AnswerFuture> {
    by_name! {
        client, name, parameters, timeout;
        Prompt Steer FollowUp Abort ClearQueue NewSession GetState GetMessages SetModel CycleModel
        GetAvailableModels SetThinkingLevel CycleThinkingLevel GetAvailableThinkingLevels SetSteeringMode
        SetFollowUpMode Compact SetAutoCompaction SetAutoRetry AbortRetry Bash AbortBash GetSessionStats
        ExportHtml SwitchSession Fork CloneSession GetForkMessages GetEntries GetLastAssistantText
        SetSessionName GetCommands NavigateTree SetLabel ListSessions DeleteSession
    }
}

/// Parameters from their JSON; the error names the parameter.
pub(crate) fn parameters<C: RpcCommand>(value: Value) -> PyResult<C> {
    wire::from_value(value).map_err(|error| PyValueError::new_err(format!("{}: {error}", C::NAME)))
}

fn typed<C: RpcCommand>(client: &RpcClient, value: Value, timeout: Option<Duration>) -> PyResult<AnswerFuture>
where
    C::Data: ToPy + Send + 'static,
{
    parameters::<C>(value.clone())?;
    Ok(answer(client.call_raw_as::<C::Data>(C::NAME, value), timeout))
}

fn answer<T: ToPy + Send + 'static>(call: Call<T>, timeout: Option<Duration>) -> AnswerFuture {
    Box::pin(async move {
        let call = match timeout {
            Some(limit) => call.with_timeout(limit),
            None => call,
        };
        Ok(Box::new(call.await?) as Answer)
    })
}

/// A future with a limit on its time.
pub(crate) async fn limited<T>(
    what: &str,
    timeout: Option<Duration>,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match timeout {
        None => future.await,
        Some(after) => tokio::time::timeout(after, future)
            .await
            .unwrap_or_else(|_| Err(ClientError::Timeout { command: what.to_owned(), after }.into())),
    }
}
