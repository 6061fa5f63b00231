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
  cargo andweorc completions bash >> ~/.bash_completion
  cargo andweorc completions zsh > ~/.zfunc/_cargo-andweorc
  cargo andweorc completions fish > ~/.config/fish/conf.d/cargo-andweorc.fish

In these shells they complete `cargo andweorc` and `cargo-andweorc`, in the others the latter. zsh needs cargo's own completions
beside them, a `~/.zfunc` that is in `fpath`, and bash a new shell.")]
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
    // A script completes the program; its name with a blank, as the help shows it, is none. In
    // bash's a name with a hyphen keeps the generator from finding the options of commands, so that
    // the hyphen is put in afterwards.
    let name = if options.shell == Shell::Bash { "cargo_andweorc" } else { "cargo-andweorc" };
    let mut script = Vec::new();
    let mut command = Cli::command().bin_name(name);
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    let script = String::from_utf8(script)?.replace(" cargo_andweorc\n", " cargo-andweorc\n");
    let of_cargo = match options.shell {
        Shell::Bash => include_str!("generate/cargo.bash"),
        Shell::Fish => include_str!("generate/cargo.fish"),
        // In zsh the completion of cargo looks for a function of this name itself.
        _ => "",
    };
    console::print(&(script + of_cargo))?;
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
