//! Call chains of copied stacks, by the tables that the compiler writes for panics (`.eh_frame`):
//! they are right whether or not code has frame pointers.
//!
//! What a table says of an address is kept. Where there is none, as for the kernel's vDSO, a frame
//! pointer is followed. Expressions, which only trampolines of signals and of the linker use, are
//! not evaluated: a chain ends there.

use super::image::{Image, Slice};
use crate::queue::LONG;
use crate::stack_copy::{ChainEnd, StackCopy};
use crate::walk::COUNT;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, RegisterRule, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::ops::Range;

/// Addresses whose rules are kept.
const MAX_RULES: usize = 1 << 16;

/// Numbers of registers in DWARF: the stack's, the frame's, and that of the return address.
const STACK: usize = if cfg!(target_arch = "aarch64") { 31 } else { 7 };
const FRAME: usize = if cfg!(target_arch = "aarch64") { 29 } else { 6 };
const RETURN: usize = if cfg!(target_arch = "aarch64") { 30 } else { 16 };

/// Place of the instruction among the registers.
const INSTRUCTION: usize = COUNT - 1;

/// How to get the registers of a caller from those of a function.
#[derive(Clone, Debug)]
struct Rule {
    /// Register and offset that the address of the frame is found by.
    frame: (usize, u64),
    /// Registers that were saved or changed.
    saved: Box<[(usize, Saved)]>,
}

/// Where the value is that a register has in the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    /// In memory, so far from the frame's address.
    At(u64),
    /// So far from the frame's address.
    Value(u64),
    In(usize),
    Nowhere,
}

/// The rules of addresses seen.
#[derive(Default)]
pub(super) struct Unwinder {
    context: UnwindContext<usize>,
    /// `None` where nothing can be told.
    rules: HashMap<u64, Option<Rule>>,
}

impl Unwinder {
    /// Forgets the rules in these ranges, whose code was loaded or unloaded.
    pub(super) fn forget(&mut self, changed: &[Range<u64>]) {
        self.rules.retain(|address, _| !changed.iter().any(|code| code.contains(address)));
    }

    /// The chain of a copied stack: the instruction, then for each caller an address inside its
    /// call. `image` tells the file of the code at an address, and what to take off.
    pub(super) fn unwind(
        &mut self,
        stack: &StackCopy,
        mut image: impl FnMut(u64) -> Option<(&'static Image, u64)>,
    ) -> (Vec<u64>, ChainEnd) {
        let mut registers = *stack.registers();
        let mut chain = vec![registers[INSTRUCTION]];
        let mut address = registers[INSTRUCTION];
        while chain.len() < LONG {
            let Some(rule) = self.rule(address, &mut image) else { return (chain, ChainEnd::Lost) };
            let before = registers[STACK];
            let caller = match rule.apply(&mut registers, |address| stack.word(address)) {
                Step::To(caller) => caller,
                Step::Start => return (chain, ChainEnd::Start),
                Step::OutOfReach if !stack.is_whole() => return (chain, ChainEnd::CutOff),
                Step::OutOfReach => return (chain, ChainEnd::Lost),
            };
            // Only a leaf that saves its caller in a register has no frame.
            if registers[STACK] < before || registers[STACK] == before && chain.len() > 1 {
                return (chain, ChainEnd::Lost);
            }
            // The call is the instruction before the one that it returns to.
            address = caller - 1;
            chain.push(address);
        }
        (chain, ChainEnd::CutOff)
    }

    fn rule(
        &mut self,
        address: u64,
        mut image: impl FnMut(u64) -> Option<(&'static Image, u64)>,
    ) -> Option<&Rule> {
        if self.rules.len() >= MAX_RULES {
            self.rules.clear();
        }
        let Unwinder { context, rules } = self;
        let find = || match image(address) {
            Some((image, bias)) => Rule::of(image, address.wrapping_sub(bias), context),
            None => Some(Rule::by_frame_pointer()),
        };
        rules.entry(address).or_insert_with(find).as_ref()
    }
}

/// A step from a function to its caller.
enum Step {
    /// To this address, which the function returns to.
    To(u64),
    /// The function starts the thread.
    Start,
    /// Something that is needed lies outside of the copy.
    OutOfReach,
}

impl Rule {
    /// The rule of an address of a file. `None` where its tables do not tell, or have expressions.
    fn of(image: &'static Image, probe: u64, context: &mut UnwindContext<usize>) -> Option<Rule> {
        let start = |name| image.object().section_by_name(name).map(|section| section.address());
        let mut bases = BaseAddresses::default()
            .set_eh_frame_hdr(start(".eh_frame_hdr")?)
            .set_eh_frame(start(".eh_frame")?);
        for (name, set) in [
            (".text", BaseAddresses::set_text as fn(BaseAddresses, u64) -> BaseAddresses),
            (".got", BaseAddresses::set_got),
        ] {
            if let Some(start) = start(name) {
                bases = set(bases, start);
            }
        }
        let index = EhFrameHdr::from(image.section(".eh_frame_hdr"));
        let index = index.parse(&bases, size_of::<u64>() as u8).ok()?;
        let frames: EhFrame<Slice> = image.section(".eh_frame").into();
        let cie = EhFrame::cie_from_offset;
        let row = index.table()?.unwind_info_for_address(&frames, &bases, context, probe, cie);
        let row = row.ok()?;
        let known = |register: gimli::Register| {
            Some(usize::from(register.0)).filter(|&number| number < COUNT)
        };
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                (known(*register)?, offset.cast_unsigned())
            }
            CfaRule::Expression(_) => return None,
        };
        let mut saved = Vec::new();
        for (register, rule) in row.registers() {
            // Vectors and flags lead nowhere.
            let Some(number) = known(*register) else { continue };
            saved.push((
                number,
                match rule {
                    RegisterRule::Offset(offset) => Saved::At(offset.cast_unsigned()),
                    RegisterRule::ValOffset(offset) => Saved::Value(offset.cast_unsigned()),
                    RegisterRule::Register(other) => Saved::In(known(*other)?),
                    RegisterRule::SameValue => continue,
                    RegisterRule::Undefined => Saved::Nowhere,
                    _ => return None,
                },
            ));
        }
        // What has no rule is as it was, but for a return address that is in no register.
        if RETURN == INSTRUCTION && !saved.iter().any(|(number, _)| *number == RETURN) {
            saved.push((RETURN, Saved::Nowhere));
        }
        Some(Rule { frame, saved: saved.into() })
    }

    /// The rule of code that has a frame pointer.
    fn by_frame_pointer() -> Rule {
        let word = |words: i64| Saved::At((words * size_of::<u64>() as i64).cast_unsigned());
        let saved = Box::new([(FRAME, word(-2)), (RETURN, word(-1))]);
        Rule { frame: (FRAME, 2 * size_of::<u64>() as u64), saved }
    }

    /// Makes the registers of a function those of its caller. `word` reads the stack.
    fn apply(&self, registers: &mut [u64; COUNT], word: impl Fn(u64) -> Option<u64>) -> Step {
        let before = *registers;
        let (register, offset) = self.frame;
        let frame = before[register].wrapping_add(offset);
        registers[STACK] = frame;
        for &(number, saved) in &self.saved {
            registers[number] = match saved {
                Saved::At(offset) => match word(frame.wrapping_add(offset)) {
                    Some(value) => value,
                    None => return Step::OutOfReach,
                },
                Saved::Value(offset) => frame.wrapping_add(offset),
                Saved::In(other) => before[other],
                Saved::Nowhere => 0,
            };
        }
        match registers[RETURN] {
            // The first page is never code.
            caller if caller < 4096 => Step::Start,
            caller => {
                registers[INSTRUCTION] = caller;
                Step::To(caller)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stack_copy::tests::ALONE;
    use crate::symbols::Symbols;
    use crate::walk::{self, Registers};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
    use std::backtrace::Backtrace;
    use std::ffi::c_void;
    use std::sync::Mutex;
    use tests_support::Plugin;

    fn step(rule: &Rule, registers: &mut [u64; COUNT], stack: &[(u64, u64)]) -> Option<u64> {
        let word = |address| stack.iter().find(|(at, _)| *at == address).map(|(_, word)| *word);
        match rule.apply(registers, word) {
            Step::To(caller) => Some(caller),
            Step::Start => Some(0),
            Step::OutOfReach => None,
        }
    }

    #[test]
    fn registers_of_a_caller_are_where_the_rule_says() {
        let mut registers = [0; COUNT];
        (registers[STACK], registers[FRAME], registers[3]) = (0x1000, 0x77, 0x2000);
        let saved = Box::new([
            (RETURN, Saved::At((-8_i64).cast_unsigned())),
            (FRAME, Saved::In(3)),
            (3, Saved::Value(8)),
        ]);
        let rule = Rule { frame: (STACK, 0x20), saved };
        assert_eq!(step(&rule, &mut registers, &[(0x1018, 0x40_0000)]), Some(0x40_0000));
        assert_eq!((registers[STACK], registers[FRAME], registers[3]), (0x1020, 0x2000, 0x1028));
        assert_eq!(step(&rule, &mut registers, &[(0x1038, 0)]), Some(0), "nobody called it");
        assert_eq!(step(&rule, &mut registers, &[]), None, "it was not copied");
    }

    #[test]
    fn code_without_tables_is_taken_to_have_a_frame_pointer() {
        let mut registers = [0; COUNT];
        (registers[STACK], registers[FRAME]) = (0x1000, 0x1010);
        let stack = [(0x1010, 0x1040), (0x1018, 0x40_0000)];
        assert_eq!(step(&Rule::by_frame_pointer(), &mut registers, &stack), Some(0x40_0000));
        assert_eq!((registers[STACK], registers[FRAME]), (0x1020, 0x1040));
    }

    /// Functions that call each other, the innermost one what `run` is given, and that use all
    /// registers that a call leaves as they are, the one of frame pointers among them.
    const DEEP: &str = r#"
use std::hint::black_box;
type Back = extern "C" fn(u64) -> u64;
#[inline(never)]
fn left(depth: u64, back: Back) -> u64 {
    let kept: [u64; 6] = std::array::from_fn(|i| black_box(depth + i as u64));
    let [a, b, c, d, e, f] = kept;
    let inner = if depth == 0 { back(depth) } else { right(depth - 1, back) };
    inner ^ a ^ (b << 1) ^ (c << 2) ^ (d << 3) ^ (e << 4) ^ (f << 5)
}
#[inline(never)]
fn right(depth: u64, back: Back) -> u64 {
    let large = black_box([depth; 100]);
    let inner = left(depth, back);
    inner ^ black_box(large)[depth as usize]
}
#[unsafe(no_mangle)]
pub extern "C" fn run(back: u64) -> u64 {
    let back: Back = unsafe { std::mem::transmute(back as usize) };
    black_box(left(10, back))
}
"#;

    /// Chains seen in the middle of it: by the stack, by frame pointers, and by std.
    static SEEN: Mutex<Option<(StackCopy, Vec<u64>)>> = Mutex::new(None);
    static TOLD: Mutex<String> = Mutex::new(String::new());

    extern "C" fn on_signal(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
        let stack = walk::own_stack();
        let mut chain = [0; LONG];
        // SAFETY: it is the context, and the stack of this thread, which raised the signal itself,
        // so that it was not in the middle of anything.
        let (copy, length) = unsafe {
            let length = walk::chain(Registers::of(context), &stack, &mut chain);
            (StackCopy::take(context, &stack), length)
        };
        *SEEN.lock().unwrap() = copy.map(|copy| (copy, chain[..length].to_vec()));
    }

    extern "C" fn look(_: u64) -> u64 {
        raise(Signal::SIGWINCH).unwrap();
        *TOLD.lock().unwrap() = Backtrace::force_capture().to_string();
        0
    }

    #[test]
    fn chain_without_frame_pointers_is_that_of_std() {
        let _alone = ALONE.lock().unwrap();
        let flags = ["-Copt-level=2", "-Cforce-frame-pointers=no"];
        let plugin = Plugin::build("deep", DEEP, &flags).unwrap();
        let loaded = plugin.load();
        let handler = SigHandler::SigAction(on_signal);
        let action = SigAction::new(handler, SaFlags::SA_SIGINFO, SigSet::empty());
        // SAFETY: the signal is ignored by default, and raised by this test alone.
        let before = unsafe { sigaction(Signal::SIGWINCH, &action) }.unwrap();
        // SAFETY: the function is of this type.
        let run = unsafe { loaded.function("run") };
        run(look as extern "C" fn(u64) -> u64 as usize as u64);
        // SAFETY: as above.
        unsafe { sigaction(Signal::SIGWINCH, &before) }.unwrap();
        let (stack, by_pointers) = SEEN.lock().unwrap().take().expect("there is a free place");
        let mut symbols = Symbols::of_this_program().unwrap();
        let (chain, end) = symbols.unwind(&stack);
        assert_eq!(end, ChainEnd::Start, "{chain:x?}");
        let mut names = |chain: &[u64]| -> Vec<String> {
            let frames = chain.iter().flat_map(|&address| symbols.frames(address).to_vec());
            let names = frames.map(|frame| frame.function.to_string());
            names.filter(|name| name.starts_with("deep::")).collect()
        };
        let told = TOLD.lock().unwrap().clone();
        let by_std: Vec<&str> =
            told.lines().filter_map(|line| line.split_once(": deep::")).map(|it| it.1).collect();
        assert_eq!(by_std.len(), 21, "{told}");
        let unwound = names(&chain);
        assert!(unwound.iter().map(|name| &name[6..]).eq(by_std), "{unwound:?}, but {told}");
        let by_pointers = names(&by_pointers);
        assert!(by_pointers.len() < 5, "it has frame pointers: {by_pointers:?}");
    }
}
