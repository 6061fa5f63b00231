//! A program whose helper, a child of fork without exec, outlives it. It says whether it could
//! start a session.

pub fn main() {
    match andweorc::Session::start(andweorc::Settings::from_env().expect("settings")) {
        Ok(_session) => {
            println!("started=1");
            std::thread::sleep(std::time::Duration::from_millis(300));
            // SAFETY: the child makes system calls, and nothing else.
            unsafe {
                if libc::fork() == 0 {
                    libc::close(1);
                    libc::close(2);
                    libc::sleep(6);
                    libc::_exit(0);
                }
            }
        }
        Err(error) => println!("started=0 {error}"),
    }
}
