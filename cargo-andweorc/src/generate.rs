//! `cargo andweorc completions` and `man`: what is made from the options themselves.

use crate::cli::Cli;
use crate::console;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// The options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc completions bash > ~/.local/share/bash-completion/completions/cargo-andweorc
  cargo andweorc completions zsh > ~/.zfunc/_cargo-andweorc
  cargo andweorc completions fish > ~/.config/fish/completions/cargo-andweorc.fish

They complete the command written with its hyphen, `cargo-andweorc`.")]
pub(crate) struct CompletionsOptions {
    /// The shell
    pub(crate) shell: Shell,
}

/// The options of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo andweorc man | man -l -
  cargo andweorc man --out ~/.local/share/man/man1")]
pub(crate) struct ManOptions {
    /// Write the page of each command into this folder, in the place of printing the first
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Prints a script for the shell.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<ExitCode, Box<dyn Error>> {
    let mut script = Vec::new();
    // A script completes the program; its name with a blank, as the help shows it, is none.
    let mut command = Cli::command().bin_name("cargo-andweorc");
    clap_complete::generate(options.shell, &mut command, "cargo-andweorc", &mut script);
    console::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes all of them.
pub(crate) fn man(options: &ManOptions) -> Result<ExitCode, Box<dyn Error>> {
    let command = Cli::command().name("cargo-andweorc");
    match &options.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            console::print(&String::from_utf8(page)?)?;
        }
        Some(folder) => fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(command, folder))
            .map_err(|error| format!("{} can't be written: {error}", folder.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}
