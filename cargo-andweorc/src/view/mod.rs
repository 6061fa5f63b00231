//! The page of a profile, served to a browser on this machine.
//!
//! For those who have no file manager at hand (a container, a forwarded port), and for a run that
//! still goes on: the page is made anew each time it is loaded.

mod http;

use crate::cli::ViewOptions;
use crate::profiles;
use crate::report::html;
use http::{Response, Served};
use std::error::Error;
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

/// Serves until the process is ended.
///
/// # Errors
///
/// When the profiles can't be read at the start, or the port is taken.
pub(crate) fn view(options: &ViewOptions) -> Result<ExitCode, Box<dyn Error>> {
    let paths = profiles::or_newest(&options.profiles)?;
    let entry = options.entry.entry.as_deref();
    profiles::read_united(&paths, entry)?;
    let port = options.port.unwrap_or(0);
    // Never another address: the page shows source code.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        format!("port {port} of 127.0.0.1 can't be had: {error}; choose another with `--port`, or leave it out")
    })?;
    let port = listener.local_addr()?.port();
    println!("The report is at http://127.0.0.1:{port}/ until Ctrl-C.");
    let page = || match profiles::read_united(&paths, entry) {
        Ok(united) => Response::html(html::html(&united, &paths, &options.page.editor)),
        Err(error) => Response::text(500, format!("{error}\n")),
    };
    http::serve(&listener, &Served { port, page: &page });
    Ok(ExitCode::SUCCESS)
}
