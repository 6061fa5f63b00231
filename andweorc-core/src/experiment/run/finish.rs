//! The last phase of a run: notes on what limits its answers, and the end of the profile.

use super::ExperimentLoop;
use super::missing::causes;
use crate::experiment::clocks::by_counter;
use crate::point::unmatched;
use crate::symbols::Symbols;
use crate::thread;
use andweorc_sampling::signal;

impl ExperimentLoop {
    /// Writes the notes at the end, and the last record.
    pub(super) fn finish(&mut self, reason: &str) {
        self.samples.note_summary(&mut self.journal);
        self.note_copies();
        self.note_signal();
        let without_account = thread::without_account();
        if without_account > 0 {
            self.journal.note(format!(
                "{without_account} threads found no free account in the ledger and were not delayed: predictions are too low \
                 where they work beside the target"
            ));
        }
        if thread::paid_waits_again() {
            self.journal.note(
                "the kernel does not tell how long threads wait for a processor (no /proc/thread-self/schedstat: it is built without \
                 CONFIG_SCHED_INFO, or no file descriptor was left): what they waited for behind other threads they were delayed by again, so that \
                 predictions are too low where there are more threads to run than processors",
            );
        }
        self.journal.note_once(causes());
        self.journal.note_once(by_counter());
        let unmatched = unmatched();
        if unmatched > 0 {
            self.journal.note(format!(
                "{unmatched} intervals were ended by `end!` on a thread where none had begun, and are not measured: in async code use a \
                 tracing span"
            ));
        }
        self.write_long_polls();
        self.journal.write_end(reason, self.samples.lost());
        self.set_status("done", None);
    }

    /// Writes the long polls, if they were looked for.
    fn write_long_polls(&mut self) {
        let scope = &self.settings.scope;
        let symbols =
            || Symbols::of_this_program().ok().map(|symbols| symbols.with_scope(scope.clone()));
        if let Some(record) = self.experimenter.long_polls().finish(symbols) {
            self.journal.write_long_polls(record);
        }
    }

    /// Notes that the program took the signal over, if it did.
    fn note_signal(&mut self) {
        if !signal::was_taken_over() {
            return;
        }
        let samples = if self.samples.is_on() {
            "; lines and functions were not sampled any more, samples on their way were lost, and what was held of such targets after \
             that is left out"
        } else {
            ""
        };
        self.journal.note(format!(
            "the program took SIGURG over while it was profiled, and andweorc sent it to no thread from then on: threads in long polls paid at \
             their ends{samples}"
        ));
    }
}
