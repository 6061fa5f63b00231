//! Prints the pace of this machine, for `DIAL_PACE`: several programs then do the same work.

fn main() {
    println!("{}", dial::pace());
}
