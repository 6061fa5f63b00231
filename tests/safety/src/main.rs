//! Runs the cases, and says which ones held. As `safety --program NAME [ARGUMENTS]` it is one of
//! their programs.

mod cases;
mod child;
mod programs;

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    if let [first, name, ..] = &wanted[..]
        && first == "--program"
    {
        programs::run(name);
        return ExitCode::SUCCESS;
    }
    let all = cases::all();
    if wanted.iter().any(|arg| arg == "--list") {
        all.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    }
    let is_wanted =
        |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.starts_with(w.as_str()));
    // A job that a shell starts in the background ignores SIGINT, and so do all that it starts.
    // SAFETY: no handler is installed, and the default action is none.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let (mut count, mut held) = (0, 0);
    for case in all.iter().filter(|case| is_wanted(&case.name)) {
        let began = Instant::now();
        let result = case.run();
        count += 1;
        held += usize::from(result.is_ok());
        let (word, told) = match result {
            Ok(told) => ("held", told),
            Err(why) => ("BROKEN", why),
        };
        println!("{word:<7} {:<34} {:>5.1} s  {told}", case.name, began.elapsed().as_secs_f64());
    }
    println!("SAFETY cases={count} held={held}");
    if count > 0 && held == count { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
