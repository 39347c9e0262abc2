//! The protocol's server: lists tools, resources and prompts, and calls tools on threads that may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use server::protocol::{Code, Failure};
use tokio::time::{Duration, Instant, interval_at};

use crate::answer::{Answer, object};
use crate::context::{Cancel, Context, Gateway};
use crate::current::Current;
use crate::{budget, prompts, resources, tools};

/// What models read before anything else.
const INSTRUCTIONS: &str = include_str!("../../docs/agents.md");

/// How often a client that requested progress learns that a call is still running.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// A server for one client.
#[derive(Clone)]
pub struct McpServer {
    gateway: Arc<Gateway>,
    /// The session that this client works with.
    current: Arc<Current>,
}

impl McpServer {
    /// Makes one.
    pub fn new(gateway: Arc<Gateway>) -> McpServer {
        McpServer {
            gateway,
            current: Arc::default(),
        }
    }

    /// Returns what all its calls share.
    pub fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.gateway)
    }

    /// Runs `work` on a thread of its own, and ends it when the client cancels the request or vanishes.
    async fn on_thread<T: Send + 'static>(
        &self,
        request: &RequestContext<RoleServer>,
        work: impl FnOnce(&Context) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let cancel = Arc::<Cancel>::default();
        let tell = progress(request);
        let current = Arc::clone(&self.current);
        let context = self
            .gateway
            .begin(Arc::clone(&cancel), Arc::clone(&tell), current);
        let mut thread = tokio::task::spawn_blocking(move || work(&context));
        // Also when this future is dropped, which is how a client's death shows.
        let _guard = SetOnDrop(Arc::clone(&cancel));
        let began = Instant::now();
        let mut sign_of_life = interval_at(began + SIGN_OF_LIFE, SIGN_OF_LIFE);
        loop {
            tokio::select! {
                done = &mut thread => {
                    return done.map_err(|error| ErrorData::internal_error(error.to_string(), None));
                }
                () = request.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the request was cancelled", None));
                }
                () = cancel.given_up() => {
                    return Err(ErrorData::internal_error("the client has left before the answer", None));
                }
                _ = sign_of_life.tick() => tell(&format!("working, {} s", began.elapsed().as_secs())),
            }
        }
    }
}

/// Ends a call when its request is over.
struct SetOnDrop(Arc<Cancel>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Returns the callback that reports progress to the client, if it requested that.
fn progress(request: &RequestContext<RoleServer>) -> Arc<dyn Fn(&str) + Send + Sync> {
    let Some(token) = request.meta.get_progress_token() else {
        return Arc::new(|_| {});
    };
    let peer = request.peer.clone();
    let runtime = tokio::runtime::Handle::current();
    let steps = AtomicU64::new(0);
    Arc::new(move |text| {
        let step = steps.fetch_add(1, Ordering::Relaxed) + 1;
        runtime.spawn(notify(peer.clone(), token.clone(), step, text.to_owned()));
    })
}

async fn notify(peer: Peer<RoleServer>, token: ProgressToken, step: u64, text: String) {
    let note = ProgressNotificationParam::new(token, step as f64).with_message(text);
    // The client may have gone.
    let _ = peer.notify_progress(note).await;
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("hindsight", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let described = tools::ALL.iter().map(|tool| {
            Tool::new(tool.name, tool.doc, tool.schema()).with_annotations(
                ToolAnnotations::new()
                    .read_only(tool.read_only)
                    .open_world(false),
            )
        });
        Ok(ListToolsResult::with_all_items(described.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let Some(tool) = tools::find(&request.name) else {
            return Ok(refused(&unknown(&request.name)));
        };
        let answered = self
            .on_thread(&context, move |context| tool.call(context, args))
            .await?;
        Ok(match answered {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Err(failure) => refused(&failure),
        })
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.on_thread(&context, resources::list).await?;
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let read = self.on_thread(&context, move |context| resources::read(context, &uri));
        match read.await? {
            Ok(result) => Ok(result.into()),
            Err(failure) => Err(ErrorData::resource_not_found(
                failure.message.clone(),
                Some(Value::Object(as_object(&failure))),
            )),
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    /// The protocol's library passes on here what it cannot read, also requests of known methods.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unreadable(&request))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let prompt = prompts::get(&request.name, &args);
        let prompt = prompt.map_err(|wrong| ErrorData::invalid_params(wrong, None))?;
        Ok(prompt.into())
    }
}

/// The methods that take parameters, and what these are.
const TAKEN: &[(&str, &str)] = &[
    (
        "tools/call",
        "an object with name, a text, and arguments, an object",
    ),
    ("resources/read", "an object with uri, a text"),
    (
        "prompts/get",
        "an object with name, a text, and arguments, an object of texts",
    ),
    ("tools/list", "an object, or left out"),
    ("resources/list", "an object, or left out"),
    ("prompts/list", "an object, or left out"),
];

/// Says what is wrong with a request that the protocol's library cannot read.
fn unreadable(request: &CustomRequest) -> ErrorData {
    let method = &request.method;
    let Some((_, taken)) = TAKEN.iter().find(|(known, _)| known == method) else {
        let message = format!("there is no method {method}");
        return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None);
    };
    let arguments = request
        .params
        .as_ref()
        .and_then(|params| params.get("arguments"));
    let wrong = match arguments.filter(|arguments| !arguments.is_object() && !arguments.is_null()) {
        Some(_) => format!("the arguments of {method} are not an object"),
        None => format!("{method} does not take these parameters"),
    };
    ErrorData::invalid_params(format!("{wrong}: its params are {taken}"), None)
}

fn refused(failure: &Failure) -> CallToolResponse {
    // A message may quote the request, which may be long.
    let answer = Answer::Object(as_object(failure));
    let text = budget::fit(answer, budget::OF_FAILURES, 0);
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}

/// A failure in the form for all clients of Hindsight.
fn as_object(failure: &Failure) -> Map<String, Value> {
    object([("success", json!(false)), ("error", json!(failure))])
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
    Failure::new(Code::BadRequest, format!("there is no tool \"{name}\""))
        .hint(format!("tools: {}", names.join(", ")))
}
