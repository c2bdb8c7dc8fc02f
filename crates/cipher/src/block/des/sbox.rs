//! The S-boxes of DES as circuits over words: bit `i` of the six words is the
//! input of one S-box, of the four results its output.
//!
//! The circuits are the project's own: the smallest that a search met on. It
//! grows a circuit output by output, looks for the wanted function first among
//! the gates that are there, then among all combinations of two or three of
//! them, and otherwise splits the function by one of the inputs. A gate is AND,
//! OR, XOR, AND with a complemented input, or NOT.

use crate::block::gates::Gates;

/// S-box `S`, from 0, of FIPS 46-3, appendix 1: the first word in and out is
/// the bit that the standard writes first.
#[inline(always)]
pub(crate) fn substitute<const S: usize, G: Gates>(x: [G; 6]) -> [G; 4] {
    match S {
        0 => s1(x),
        1 => s2(x),
        2 => s3(x),
        3 => s4(x),
        4 => s5(x),
        5 => s6(x),
        6 => s7(x),
        _ => s8(x),
    }
}

/// S-box 1: 57 gates.
#[inline(always)]
fn s1<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = a ^ d;
    let t1 = t0 ^ e;
    let t2 = e & !t1;
    let t3 = !t2;
    let t4 = t3 & !f;
    let t5 = t1 ^ t4;
    let t6 = e ^ f;
    let t7 = t4 ^ t6;
    let t8 = t7 & !t5;
    let t9 = t8 & d;
    let t10 = t6 ^ t9;
    let t11 = t10 & c;
    let t12 = t5 ^ t11;
    let t13 = t2 & !t9;
    let t14 = a & !e;
    let t15 = t14 | t10;
    let t16 = t15 | c;
    let t17 = t13 ^ t16;
    let t18 = t17 & b;
    let t19 = t12 ^ t18;
    let t20 = t3 & !t6;
    let t21 = t20 ^ b;
    let t22 = t6 | t1;
    let t23 = t22 | b;
    let t24 = t2 ^ t23;
    let t25 = t24 & a;
    let t26 = t21 ^ t25;
    let t27 = t26 & !t0;
    let t28 = t27 ^ t6;
    let t29 = b & !t14;
    let t30 = t29 | t8;
    let t31 = t30 & a;
    let t32 = t28 ^ t31;
    let t33 = t32 & c;
    let t34 = t26 ^ t33;
    let t35 = t21 ^ t19;
    let t36 = t35 | t11;
    let t37 = t32 | t2;
    let t38 = t37 & !b;
    let t39 = t36 ^ t38;
    let t40 = t7 & !t18;
    let t41 = t25 ^ t18;
    let t42 = t21 & !t41;
    let t43 = t42 & !f;
    let t44 = t40 ^ t43;
    let t45 = t44 | c;
    let t46 = t39 ^ t45;
    let t47 = t15 & !t26;
    let t48 = t47 ^ t17;
    let t49 = t44 & !t0;
    let t50 = t49 ^ t38;
    let t51 = t50 & !b;
    let t52 = t48 ^ t51;
    let t53 = t40 & !t48;
    let t54 = t53 ^ t6;
    let t55 = t54 & !c;
    let t56 = t52 ^ t55;
    [t34, t46, t19, t56]
}

/// S-box 2: 52 gates.
#[inline(always)]
fn s2<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = b & !f;
    let t1 = t0 ^ e;
    let t2 = t1 ^ a;
    let t3 = t2 & !t1;
    let t4 = t0 & !t3;
    let t5 = t4 | d;
    let t6 = t2 ^ t5;
    let t7 = f ^ b;
    let t8 = !t7;
    let t9 = t5 & f;
    let t10 = t9 | t3;
    let t11 = t10 & e;
    let t12 = t8 ^ t11;
    let t13 = t12 | c;
    let t14 = t6 ^ t13;
    let t15 = a & !f;
    let t16 = t15 | e;
    let t17 = t8 ^ t16;
    let t18 = t11 | t9;
    let t19 = t18 & t14;
    let t20 = t19 | c;
    let t21 = t17 ^ t20;
    let t22 = t10 | c;
    let t23 = t22 & !e;
    let t24 = t8 & !t21;
    let t25 = f & !t24;
    let t26 = t25 | a;
    let t27 = t23 ^ t26;
    let t28 = t27 | d;
    let t29 = t21 ^ t28;
    let t30 = t25 | t1;
    let t31 = t30 & a;
    let t32 = t17 ^ t31;
    let t33 = t1 & !t15;
    let t34 = t33 | b;
    let t35 = t34 & d;
    let t36 = t32 ^ t35;
    let t37 = t34 & t31;
    let t38 = t37 ^ t4;
    let t39 = t38 | c;
    let t40 = t36 ^ t39;
    let t41 = t4 ^ c;
    let t42 = t40 & !t19;
    let t43 = t42 ^ t31;
    let t44 = t43 | e;
    let t45 = t41 ^ t44;
    let t46 = t15 ^ t22;
    let t47 = t28 & !t14;
    let t48 = t47 | d;
    let t49 = t46 ^ t48;
    let t50 = t49 | b;
    let t51 = t45 ^ t50;
    [t40, t14, t29, t51]
}

/// S-box 3: 52 gates.
#[inline(always)]
fn s3<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = b ^ f;
    let t1 = t0 ^ c;
    let t2 = t1 & b;
    let t3 = f & !t2;
    let t4 = t3 | d;
    let t5 = a & t4;
    let t6 = t1 ^ t5;
    let t7 = d ^ t2;
    let t8 = t7 ^ c;
    let t9 = t8 | a;
    let t10 = t2 ^ t9;
    let t11 = t10 & !e;
    let t12 = t6 ^ t11;
    let t13 = t4 ^ t8;
    let t14 = t13 ^ a;
    let t15 = t14 ^ t10;
    let t16 = t15 | c;
    let t17 = t16 & b;
    let t18 = t14 ^ t17;
    let t19 = t15 & !c;
    let t20 = t12 ^ b;
    let t21 = t20 & t9;
    let t22 = t21 | f;
    let t23 = t19 ^ t22;
    let t24 = t23 & e;
    let t25 = t18 ^ t24;
    let t26 = t7 ^ e;
    let t27 = t11 & !t18;
    let t28 = t27 | t14;
    let t29 = t28 & !f;
    let t30 = t26 ^ t29;
    let t31 = c & t21;
    let t32 = !t31;
    let t33 = d | t20;
    let t34 = t33 ^ t9;
    let t35 = t34 & b;
    let t36 = t32 ^ t35;
    let t37 = t36 & !a;
    let t38 = t30 ^ t37;
    let t39 = t1 & !t34;
    let t40 = t39 | t30;
    let t41 = t18 ^ t26;
    let t42 = t41 ^ t12;
    let t43 = t42 | e;
    let t44 = t40 ^ t43;
    let t45 = t33 ^ t37;
    let t46 = t45 ^ t27;
    let t47 = t42 & !t29;
    let t48 = t47 & e;
    let t49 = t46 ^ t48;
    let t50 = t49 & !d;
    let t51 = t44 ^ t50;
    [t38, t25, t51, t12]
}

/// S-box 4: 38 gates.
#[inline(always)]
fn s4<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = e ^ d;
    let t1 = !c;
    let t2 = t0 & d;
    let t3 = t1 ^ t2;
    let t4 = t3 & !b;
    let t5 = t0 ^ t4;
    let t6 = t0 & t3;
    let t7 = t6 ^ d;
    let t8 = t3 | b;
    let t9 = t7 & t8;
    let t10 = t9 | a;
    let t11 = t5 ^ t10;
    let t12 = b ^ t3;
    let t13 = t12 | t6;
    let t14 = t13 ^ e;
    let t15 = t4 ^ d;
    let t16 = t15 & t7;
    let t17 = t16 & a;
    let t18 = t14 ^ t17;
    let t19 = t18 & !f;
    let t20 = t11 ^ t19;
    let t21 = f & !t18;
    let t22 = t21 ^ t11;
    let t23 = t8 & !t0;
    let t24 = t23 | t4;
    let t25 = t5 & !b;
    let t26 = t25 | t7;
    let t27 = t26 & a;
    let t28 = t24 ^ t27;
    let t29 = d ^ t13;
    let t30 = e | t24;
    let t31 = t30 & !t7;
    let t32 = t31 & !a;
    let t33 = t29 ^ t32;
    let t34 = t33 | f;
    let t35 = t28 ^ t34;
    let t36 = t35 ^ f;
    let t37 = t36 ^ t33;
    [t20, t22, t35, t37]
}

/// S-box 5: 56 gates.
#[inline(always)]
fn s5<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = f ^ d;
    let t1 = f ^ c;
    let t2 = t1 | d;
    let t3 = t2 & !b;
    let t4 = t0 ^ t3;
    let t5 = t2 & !c;
    let t6 = t5 | e;
    let t7 = t4 ^ t6;
    let t8 = b & !d;
    let t9 = c ^ t2;
    let t10 = t9 & e;
    let t11 = t8 ^ t10;
    let t12 = t2 | f;
    let t13 = t11 & t12;
    let t14 = t13 | a;
    let t15 = t7 ^ t14;
    let t16 = t6 ^ t3;
    let t17 = t16 | t13;
    let t18 = t15 ^ b;
    let t19 = t18 ^ t5;
    let t20 = t19 & !d;
    let t21 = f ^ t20;
    let t22 = t21 & e;
    let t23 = t17 ^ t22;
    let t24 = t10 ^ b;
    let t25 = t24 | t7;
    let t26 = t17 ^ t5;
    let t27 = t7 & !t26;
    let t28 = t27 & !f;
    let t29 = t25 ^ t28;
    let t30 = t29 & a;
    let t31 = t23 ^ t30;
    let t32 = b ^ d;
    let t33 = t32 ^ t26;
    let t34 = t26 & !t19;
    let t35 = !t34;
    let t36 = t35 & !a;
    let t37 = t33 ^ t36;
    let t38 = t32 & !t10;
    let t39 = t0 | t15;
    let t40 = t39 ^ d;
    let t41 = t40 & !a;
    let t42 = t38 ^ t41;
    let t43 = t42 & c;
    let t44 = t37 ^ t43;
    let t45 = t18 ^ t44;
    let t46 = t23 | a;
    let t47 = t45 ^ t46;
    let t48 = t35 & t31;
    let t49 = !t48;
    let t50 = t49 & !e;
    let t51 = t47 ^ t50;
    let t52 = t21 & !t6;
    let t53 = t52 | t48;
    let t54 = t53 | b;
    let t55 = t51 ^ t54;
    [t55, t15, t44, t31]
}

/// S-box 6: 54 gates.
#[inline(always)]
fn s6<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = f ^ b;
    let t1 = !e;
    let t2 = t0 & b;
    let t3 = t1 ^ t2;
    let t4 = t3 & c;
    let t5 = t0 ^ t4;
    let t6 = f & !t5;
    let t7 = e & !t6;
    let t8 = t7 | c;
    let t9 = t6 ^ t8;
    let t10 = t9 & a;
    let t11 = t5 ^ t10;
    let t12 = t1 & !t9;
    let t13 = t9 & !t4;
    let t14 = f & !t13;
    let t15 = t14 & !a;
    let t16 = t12 ^ t15;
    let t17 = t16 | d;
    let t18 = t11 ^ t17;
    let t19 = d ^ t10;
    let t20 = c & e;
    let t21 = t19 ^ t20;
    let t22 = t3 | t18;
    let t23 = t22 & f;
    let t24 = t23 & !a;
    let t25 = t21 ^ t24;
    let t26 = t4 | t23;
    let t27 = t25 | t1;
    let t28 = t27 & !t16;
    let t29 = t28 | a;
    let t30 = t26 ^ t29;
    let t31 = t30 & b;
    let t32 = t25 ^ t31;
    let t33 = t5 ^ t29;
    let t34 = t21 ^ t9;
    let t35 = t34 | e;
    let t36 = t35 & !d;
    let t37 = t33 ^ t36;
    let t38 = d & !c;
    let t39 = t2 & !t38;
    let t40 = t37 ^ t39;
    let t41 = t3 ^ a;
    let t42 = t41 | t24;
    let t43 = t11 ^ t35;
    let t44 = t43 & t27;
    let t45 = t44 & !b;
    let t46 = t42 ^ t45;
    let t47 = t11 | t30;
    let t48 = b ^ t30;
    let t49 = t48 & f;
    let t50 = t49 & !d;
    let t51 = t47 ^ t50;
    let t52 = t51 & c;
    let t53 = t46 ^ t52;
    [t18, t53, t32, t40]
}

/// S-box 7: 53 gates.
#[inline(always)]
fn s7<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = d ^ e;
    let t1 = t0 ^ a;
    let t2 = t0 & !e;
    let t3 = t2 ^ b;
    let t4 = t3 | c;
    let t5 = t1 ^ t4;
    let t6 = t2 & !t3;
    let t7 = !t6;
    let t8 = c ^ t1;
    let t9 = t3 & !t8;
    let t10 = t9 & a;
    let t11 = t7 ^ t10;
    let t12 = t11 & f;
    let t13 = t5 ^ t12;
    let t14 = a & !c;
    let t15 = t14 ^ b;
    let t16 = t10 | t8;
    let t17 = t16 | t14;
    let t18 = t17 & !f;
    let t19 = t15 ^ t18;
    let t20 = t11 & !t14;
    let t21 = t20 ^ t3;
    let t22 = t13 | e;
    let t23 = t21 | c;
    let t24 = t22 ^ t23;
    let t25 = t24 & f;
    let t26 = t21 ^ t25;
    let t27 = t26 & d;
    let t28 = t19 ^ t27;
    let t29 = t5 ^ t11;
    let t30 = t8 ^ t19;
    let t31 = t30 ^ t29;
    let t32 = t31 & f;
    let t33 = t29 ^ t32;
    let t34 = t13 | t1;
    let t35 = t34 & a;
    let t36 = t7 ^ t35;
    let t37 = t36 & !t18;
    let t38 = t37 | t24;
    let t39 = t38 & d;
    let t40 = t36 ^ t39;
    let t41 = t40 & !b;
    let t42 = t33 ^ t41;
    let t43 = t28 ^ t10;
    let t44 = t43 ^ t41;
    let t45 = t42 ^ t12;
    let t46 = t38 & !t45;
    let t47 = t46 & f;
    let t48 = t44 ^ t47;
    let t49 = f & !t28;
    let t50 = t49 ^ t4;
    let t51 = t50 & !d;
    let t52 = t48 ^ t51;
    [t42, t52, t28, t13]
}

/// S-box 8: 48 gates.
#[inline(always)]
fn s8<G: Gates>([a, b, c, d, e, f]: [G; 6]) -> [G; 4] {
    let t0 = a ^ c;
    let t1 = b & !d;
    let t2 = t0 ^ t1;
    let t3 = t1 & a;
    let t4 = t2 & a;
    let t5 = !t4;
    let t6 = t5 ^ d;
    let t7 = t6 | b;
    let t8 = t3 ^ t7;
    let t9 = t8 & !e;
    let t10 = t2 ^ t9;
    let t11 = e & !t6;
    let t12 = t11 | t9;
    let t13 = t9 | a;
    let t14 = d & !c;
    let t15 = t13 | t14;
    let t16 = t15 & !b;
    let t17 = t12 ^ t16;
    let t18 = t17 | f;
    let t19 = t10 ^ t18;
    let t20 = t10 & !e;
    let t21 = t20 ^ t1;
    let t22 = t11 ^ c;
    let t23 = t22 | b;
    let t24 = t21 ^ t23;
    let t25 = t7 & d;
    let t26 = t0 & e;
    let t27 = t25 ^ t26;
    let t28 = t27 & a;
    let t29 = t28 | f;
    let t30 = t24 ^ t29;
    let t31 = t7 ^ t21;
    let t32 = t1 & t19;
    let t33 = t32 & f;
    let t34 = t9 ^ t33;
    let t35 = t34 & b;
    let t36 = t31 ^ t35;
    let t37 = t26 & b;
    let t38 = d | e;
    let t39 = t38 & !f;
    let t40 = t37 | t39;
    let t41 = t40 & a;
    let t42 = t36 ^ t41;
    let t43 = t25 ^ t23;
    let t44 = t38 | t2;
    let t45 = t43 ^ t44;
    let t46 = t45 & f;
    let t47 = t10 ^ t46;
    [t19, t30, t42, t47]
}

#[cfg(test)]
mod tests {
    use super::substitute;
    use crate::reference::des::SBOXES;

    /// All 64 inputs side by side: bit i of word j is bit j of input i, the
    /// first the most significant.
    fn inputs() -> [u64; 6] {
        std::array::from_fn(|j| (0..64).fold(0, |word, i| word | (i >> (5 - j) & 1) << i))
    }

    fn check<const S: usize>() {
        let outputs = substitute::<S, u64>(inputs());
        for i in 0..64 {
            let (row, column) = (i >> 5 << 1 | i & 1, i >> 1 & 15);
            let output = outputs
                .iter()
                .fold(0, |y, word| y << 1 | (word >> i & 1) as u8);
            assert_eq!(output, SBOXES[S][row][column], "S{} of {i}", S + 1);
        }
    }

    #[test]
    fn circuits_are_the_standards_tables() {
        check::<0>();
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
        check::<5>();
        check::<6>();
        check::<7>();
    }
}
