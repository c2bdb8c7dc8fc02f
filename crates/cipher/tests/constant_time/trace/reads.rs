//! The effects of an instruction's registers that an observer can see: the addresses it touches,
//! the operands that a divider's time depends on, and where it goes.
//!
//! A signal's handler uses this: nothing here allocates.

use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use super::step::{Vectors, mixed};

/// The general registers, as instructions number them.
pub struct Registers {
    pub general: [u64; 16],
    pub flags: u64,
}

const RCX: u8 = 1;
const RDX: u8 = 2;
const RSP: u8 = 4;
const RBP: u8 = 5;
const RSI: u8 = 6;
const RDI: u8 = 7;

/// The observable inputs of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reads {
    /// Memory that it names.
    address: Option<Address>,
    /// Registers that are addresses without being named. The stack's is always
    /// observed.
    implied: [Option<u8>; 3],
    /// Vectors of indices or of masks, which decide where memory is touched. The
    /// whole of them is observed, which is more than can be.
    vectors: [Option<u8>; 2],
    /// The mask register that decides it.
    mask: Option<u8>,
    divisor: Option<Divisor>,
}

/// Segments are left out: the base of a thread's memory is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Address {
    base: Option<u8>,
    index: Option<u8>,
    scale: u8,
    displacement: u64,
    /// Of 32 bits.
    is_short: bool,
}

/// The divisor of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Divisor {
    Register(u8),
    /// So many bytes at its address.
    Memory(usize),
}

impl Reads {
    /// Of no instruction.
    pub const NOTHING: Self = Self {
        address: None,
        implied: [None; 3],
        vectors: [None; 2],
        mask: None,
        divisor: None,
    };

    fn of(instruction: &Instruction) -> Self {
        let mnemonic = instruction.mnemonic();
        // Their memory operands are not memory: sums and fillings.
        let touches = !matches!(mnemonic, Mnemonic::Lea | Mnemonic::Nop);
        let has = |kind| instruction.op_kinds().any(|operand| operand == kind);
        let named = (touches && has(OpKind::Memory)).then(|| Address::of(instruction));
        let strings = [
            (has(OpKind::MemorySegRSI), RSI),
            (has(OpKind::MemoryESRDI) || has(OpKind::MemorySegRDI), RDI),
            (
                instruction.has_rep_prefix() || instruction.has_repne_prefix(),
                RCX,
            ),
        ];
        let mut implied = strings.map(|(is_read, register)| is_read.then_some(register));
        if mnemonic == Mnemonic::Leave {
            implied[0] = Some(RBP);
        }
        let touches = named.is_some() || implied.iter().any(Option::is_some);
        let number = |register: Register| register.number() as u8;
        let index = instruction.memory_index();
        let is_gather = touches && index.is_vector_register();
        let mask = instruction.op_mask();
        let has_mask = mask != Register::None;
        let is_masked = has_mask && (is_gather || touches && is_packed(mnemonic));
        let mask = is_masked.then(|| number(mask));
        let vector_mask = match mnemonic {
            Mnemonic::Vpmaskmovd
            | Mnemonic::Vpmaskmovq
            | Mnemonic::Vmaskmovps
            | Mnemonic::Vmaskmovpd => Some(instruction.op1_register()),
            Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => Some(instruction.op2_register()),
            // Before AVX-512 a gather's mask is a vector.
            _ if is_gather && !has_mask => Some(instruction.op2_register()),
            _ => None,
        };
        let divides = matches!(mnemonic, Mnemonic::Div | Mnemonic::Idiv);
        let divisor = divides.then(|| match instruction.op0_kind() {
            OpKind::Register => {
                Divisor::Register(number(instruction.op0_register().full_register()))
            }
            _ => Divisor::Memory(instruction.memory_size().size()),
        });
        Self {
            address: named,
            implied,
            vectors: [is_gather.then(|| number(index)), vector_mask.map(number)],
            mask,
            divisor,
        }
    }

    /// A sum of what can be observed when it is run next. `memory` has so many
    /// bytes at an address, which the instruction reads.
    pub fn observe<'a>(
        &self,
        registers: &Registers,
        vectors: impl FnOnce() -> Vectors<'a>,
        memory: impl FnOnce(u64, usize) -> u64,
    ) -> u64 {
        let general = |register: u8| registers.general[usize::from(register)];
        let mut seen = mixed(0, general(RSP));
        let mut see = |part| seen = mixed(seen, part);
        let address = self.address.map_or(0, |address| address.value(registers));
        see(address);
        self.implied
            .iter()
            .flatten()
            .for_each(|register| see(general(*register)));
        if let Some(divisor) = self.divisor {
            see(general(0));
            see(general(RDX));
            see(match divisor {
                Divisor::Register(register) => general(register),
                Divisor::Memory(len) => memory(address, len),
            });
        }
        let takes_vectors = self.mask.is_some() || self.vectors.iter().any(Option::is_some);
        if takes_vectors {
            let vectors = vectors();
            for register in self.vectors.iter().flatten() {
                vectors
                    .zmm(usize::from(*register))
                    .into_iter()
                    .for_each(&mut see);
            }
            if let Some(mask) = self.mask {
                see(vectors.mask(usize::from(mask)));
            }
        }
        seen
    }
}

/// Whether a mask decides how much memory is touched. That of any other
/// instruction does not: the CPU reads or writes whole vectors at one address,
/// and what the mask leaves out would only matter if it were not mapped. (What
/// a compiler keeps on the stack and then selects by a mask is such a load.)
fn is_packed(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Vpcompressb
            | Mnemonic::Vpcompressw
            | Mnemonic::Vpcompressd
            | Mnemonic::Vpcompressq
            | Mnemonic::Vcompressps
            | Mnemonic::Vcompresspd
            | Mnemonic::Vpexpandb
            | Mnemonic::Vpexpandw
            | Mnemonic::Vpexpandd
            | Mnemonic::Vpexpandq
            | Mnemonic::Vexpandps
            | Mnemonic::Vexpandpd
    )
}

impl Address {
    fn of(instruction: &Instruction) -> Self {
        let base = instruction.memory_base();
        let index = instruction.memory_index();
        let number = |register: Register| register.full_register().number() as u8;
        let is_short = |register: Register| register.is_gpr32();
        Self {
            base: base.is_gpr().then(|| number(base)),
            index: index.is_gpr().then(|| number(index)),
            scale: instruction.memory_index_scale() as u8,
            displacement: instruction.memory_displacement64(),
            is_short: is_short(base) || is_short(index),
        }
    }

    /// `lea rax, [base + index * scale + displacement]`, which changes no flags.
    fn lea(&self) -> Option<[u8; 8]> {
        if self.is_short {
            return None;
        }
        let displacement = i32::try_from(self.displacement.cast_signed()).ok()?;
        let [a, b, c, d] = displacement.to_le_bytes();
        // Four stands for no index, and five, without a displacement of the base,
        // for no base.
        let (index, base) = (self.index.unwrap_or(4), self.base.unwrap_or(5));
        let mode = if self.base.is_some() { 0x84 } else { 0x04 };
        let rex = 0x48 | index >> 3 << 1 | base >> 3;
        let scale = self.scale.trailing_zeros() as u8;
        let sib = scale << 6 | (index & 7) << 3 | base & 7;
        Some([rex, 0x8d, mode, sib, a, b, c, d])
    }

    fn value(&self, registers: &Registers) -> u64 {
        let of = |register: Option<u8>| {
            register.map_or(0, |register| registers.general[usize::from(register)])
        };
        let index = of(self.index).wrapping_mul(u64::from(self.scale));
        let sum = of(self.base)
            .wrapping_add(index)
            .wrapping_add(self.displacement);
        match self.is_short {
            true => sum & 0xffff_ffff,
            false => sum,
        }
    }
}

/// Where an instruction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// To the one behind it.
    On,
    To(u64),
    /// There, on a condition.
    If(ConditionCode, u64),
    /// There, if RCX is zero.
    IfNoCount(u64),
    /// Where a register or memory says.
    Where(Place),
    /// The same, and the address behind it is put on the stack.
    Calls(u64),
    CallsWhere(Place),
    /// Where the stack says, and so many bytes are taken from it.
    Back(u64),
    /// `int3`: the end.
    Nowhere,
}

/// The place that holds the address of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Register(u8),
    /// The memory that the instruction names.
    Memory,
}

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub reads: Reads,
    pub goes: Goes,
    pub len: usize,
    /// Where its displacement of four bytes is, and what it leads to, if that is
    /// counted from the instruction.
    pub relative: Option<(usize, u64)>,
}

impl Known {
    /// A place for one.
    pub const NOTHING: Self = Self {
        reads: Reads::NOTHING,
        goes: Goes::On,
        len: 0,
        relative: None,
    };

    /// The instruction that `code` starts with; none if it is unknown.
    pub fn of(code: &[u8], address: u64) -> Option<Self> {
        let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        let relative = instruction.is_ip_rel_memory_operand().then(|| {
            let offsets = decoder.get_constant_offsets(&instruction);
            (
                offsets.displacement_offset(),
                instruction.ip_rel_memory_address(),
            )
        });
        Some(Self {
            reads: Reads::of(&instruction),
            goes: Goes::of(&instruction)?,
            len: instruction.len(),
            relative,
        })
    }

    /// Code that puts the address that it touches into RAX; none if it touches no
    /// address, or one that only its own place decides. No code, if it goes
    /// elsewhere or shows more than that.
    pub fn address_into_rax(&self) -> Option<Option<[u8; 8]>> {
        let address = self.reads.address;
        let shown = Reads {
            address,
            ..Reads::NOTHING
        };
        match address {
            _ if self.goes != Goes::On || self.reads != shown => None,
            Some(address) if address.base.or(address.index).is_some() => Some(Some(address.lea()?)),
            _ => Some(None),
        }
    }

    /// The address of the memory that it names.
    pub fn address(&self, registers: &Registers) -> u64 {
        self.reads
            .address
            .map_or(0, |address| address.value(registers))
    }
}

impl Goes {
    fn of(instruction: &Instruction) -> Option<Self> {
        let target = instruction.near_branch_target();
        let place = || match instruction.op0_kind() {
            OpKind::Register => Some(Place::Register(instruction.op0_register().number() as u8)),
            // Of no other segment: its base is not known here.
            OpKind::Memory if instruction.segment_prefix() == Register::None => Some(Place::Memory),
            _ => None,
        };
        match instruction.flow_control() {
            FlowControl::Next => Some(Self::On),
            FlowControl::UnconditionalBranch => Some(Self::To(target)),
            FlowControl::ConditionalBranch if instruction.mnemonic() == Mnemonic::Jrcxz => {
                Some(Self::IfNoCount(target))
            }
            FlowControl::ConditionalBranch => match instruction.condition_code() {
                ConditionCode::None => None,
                condition => Some(Self::If(condition, target)),
            },
            FlowControl::IndirectBranch => Some(Self::Where(place()?)),
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => Some(Self::On),
            FlowControl::Call => Some(Self::Calls(target)),
            FlowControl::IndirectCall => Some(Self::CallsWhere(place()?)),
            FlowControl::Return => {
                let more = match instruction.op_count() {
                    0 => 0,
                    _ => instruction.immediate(0),
                };
                Some(Self::Back(8 + more))
            }
            FlowControl::Interrupt if instruction.mnemonic() == Mnemonic::Int3 => {
                Some(Self::Nowhere)
            }
            _ => None,
        }
    }
}

/// Whether a condition holds.
pub fn holds(condition: ConditionCode, flags: u64) -> bool {
    let flag = |bit: u32| flags >> bit & 1 == 1;
    let [carry, parity, zero, sign, overflow] = [0, 2, 6, 7, 11].map(flag);
    match condition {
        ConditionCode::None => true,
        ConditionCode::o => overflow,
        ConditionCode::no => !overflow,
        ConditionCode::b => carry,
        ConditionCode::ae => !carry,
        ConditionCode::e => zero,
        ConditionCode::ne => !zero,
        ConditionCode::be => carry || zero,
        ConditionCode::a => !carry && !zero,
        ConditionCode::s => sign,
        ConditionCode::ns => !sign,
        ConditionCode::p => parity,
        ConditionCode::np => !parity,
        ConditionCode::l => sign != overflow,
        ConditionCode::ge => sign == overflow,
        ConditionCode::le => zero || sign != overflow,
        ConditionCode::g => !zero && sign == overflow,
    }
}

/// Checks the observed inputs of instructions that are easily overlooked.
pub fn nothing_is_overlooked() {
    let names = |code: &[u8]| {
        let known = Known::of(code, 0x1000).unwrap_or_else(|| panic!("unknown: {code:x?}"));
        assert_eq!(known.len, code.len(), "{code:x?}");
        let reads = known.reads;
        let counted = [
            ("address", usize::from(reads.address.is_some())),
            ("implied", reads.implied.iter().flatten().count()),
            ("vectors", reads.vectors.iter().flatten().count()),
            ("mask", usize::from(reads.mask.is_some())),
            ("divisor", usize::from(reads.divisor.is_some())),
        ];
        let named = counted.iter().filter(|(_, count)| *count > 0);
        let named: Vec<_> = named
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        named.join(", ")
    };
    for (code, text, expected) in [
        (
            &[0x0f, 0xb6, 0x04, 0x07][..],
            "movzx eax,byte ptr [rdi+rax]",
            "address 1",
        ),
        (&[0x48, 0x8d, 0x04, 0x07], "lea rax,[rdi+rax]", ""),
        (&[0x0f, 0x1f, 0x04, 0x07], "nop dword ptr [rdi+rax]", ""),
        (&[0xd7], "xlatb", "address 1"),
        (&[0xa4], "movsb", "implied 2"),
        (&[0xf3, 0xa4], "rep movsb", "implied 3"),
        (&[0xc9], "leave", "implied 1"),
        (&[0x0f, 0x18, 0x08], "prefetcht0 [rax]", "address 1"),
        (&[0x0f, 0xae, 0x38], "clflush [rax]", "address 1"),
        (&[0x48, 0xf7, 0xf3], "div rbx", "divisor 1"),
        (
            &[0x48, 0xf7, 0x33],
            "div qword ptr [rbx]",
            "address 1, divisor 1",
        ),
        (
            &[0xc4, 0xe2, 0x75, 0x90, 0x04, 0xd7],
            "vpgatherdd ymm0,[rdi+ymm2*8],ymm1",
            "address 1, vectors 2",
        ),
        (
            &[0x62, 0xf2, 0x7d, 0x49, 0x90, 0x04, 0xcf],
            "vpgatherdd, 512 bits",
            "address 1, vectors 1, mask 1",
        ),
        (
            &[0xc4, 0xe2, 0x7d, 0x8c, 0x07],
            "vpmaskmovd ymm0,ymm0,[rdi]",
            "address 1, vectors 1",
        ),
        (
            &[0xc5, 0xf9, 0xf7, 0xc1],
            "vmaskmovdqu xmm0,xmm1",
            "implied 1, vectors 1",
        ),
        (
            &[0x62, 0xf1, 0x7f, 0xc9, 0x6f, 0x07],
            "vmovdqu8 zmm0{k1}{z},[rdi]",
            "address 1",
        ),
        (
            &[0x62, 0xf2, 0x7d, 0xc9, 0x89, 0x07],
            "vpexpandd zmm0{k1}{z},[rdi]",
            "address 1, mask 1",
        ),
        (
            &[0x62, 0x52, 0x35, 0x49, 0x8d, 0x1b],
            "vpermb zmm11{k1},zmm9,[r11]",
            "address 1",
        ),
        (
            &[0x62, 0xf1, 0x7f, 0xc9, 0x6f, 0xc1],
            "vmovdqu8 zmm0{k1}{z},zmm1",
            "",
        ),
    ] {
        assert_eq!(names(code), expected, "{text}");
    }
}
