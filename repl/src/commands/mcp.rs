//! `hindsight mcp`: serves language models over the Model Context Protocol.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::net::SocketAddr;

use crate::error::Error;
use crate::exit;

const EXAMPLES: &str = "\
Examples:
  claude mcp add hindsight -- hindsight mcp
  hindsight mcp --http 127.0.0.1:8017

Clients that are configured by a file (VS Code: \"servers\", and in it \"type\": \"stdio\"):
  {\"mcpServers\": {\"hindsight\": {\"command\": \"hindsight\", \"args\": [\"mcp\"]}}}";

/// The variable that sets the token.
const TOKEN_VARIABLE: &str = "HINDSIGHT_MCP_TOKEN";

/// Serve language models over the Model Context Protocol
///
/// A client starts the server and talks to it over stdin and stdout. The server ends when the client closes stdin;
/// programs stay under control. With --http, the server serves several clients on this machine; they must send the token
/// that it prints.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Serve HTTP at this loopback address, such as 127.0.0.1:8017; port 0 takes a free one
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
}

/// Serves until the client has gone.
///
/// # Errors
/// When it cannot serve.
pub fn run(args: &Args) -> Result<u8, Error> {
    let failed = |source| Error::io("serve the protocol", source);
    let executable =
        std::env::current_exe().map_err(|error| Error::io("find this program", error))?;
    match args.http {
        None => {
            if io::stdin().is_terminal() {
                eprintln!(
                    "hindsight: waiting for a client of the Model Context Protocol on stdin; hindsight mcp --help says how to add it to one"
                );
            }
            gateway::serve_stdio(executable).map_err(failed)?;
        }
        Some(address) if !address.ip().is_loopback() => {
            let help = "use 127.0.0.1 or [::1]; from another machine, forward a port with ssh -L";
            let message = format!("{address} can be reached from other machines");
            return Err(Error::usage(message, Some(help.to_owned())));
        }
        Some(address) => {
            let token = token().map_err(|source| Error::io("make a token", source))?;
            let shown = token.clone();
            let ready = move |address| {
                eprintln!("hindsight: serving at http://{address}/mcp");
                eprintln!("hindsight: Authorization: Bearer {shown}");
            };
            gateway::serve_http(executable, address, token, ready).map_err(failed)?;
        }
    }
    Ok(exit::DONE)
}

/// Returns the token of the environment, or a new one of 128 random bits.
fn token() -> io::Result<String> {
    if let Some(token) = std::env::var(TOKEN_VARIABLE)
        .ok()
        .filter(|token| !token.is_empty())
    {
        return Ok(token);
    }
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
