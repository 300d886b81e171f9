//! What the lanes of a warp do to matrices that they hold together.
//!
//! Sums of integers are exact. Products of floating-point numbers are added up one after another in double precision and rounded once:
//! the hardware's order, and what it drops on the way, are written down nowhere.

use super::block::Runner;
use crate::matrix::{Fragment, Matrix, Number, Product};
use crate::registers::{Class, Lanes, Narrow, Wide};
use engine::{Kind, Pc};

/// A matrix of 8 by 8 elements of 16 bits, row by row.
type Small = [[u16; 8]; 8];

fn transposed(matrix: Small) -> Small {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[column][row]))
}

fn of_fragment(words: &[u32; 32]) -> Small {
    std::array::from_fn(|row| std::array::from_fn(|column| (words[4 * row + column / 2] >> (16 * (column % 2))) as u16))
}

fn fragment_of(matrix: &Small) -> [u32; 32] {
    std::array::from_fn(|lane| {
        let [low, high] = [0, 1].map(|side| u32::from(matrix[lane / 4][lane % 4 * 2 + side]));
        low | high << 16
    })
}

impl Runner {
    /// Carries out what all lanes of a warp do to matrices: false if some are missing, which is a finding.
    pub(super) fn matrix(&mut self, matrix: &Matrix, warp: usize, active: u32, pc: Pc) -> bool {
        if active != u32::MAX {
            let missing = active.trailing_ones();
            let detail = format!("all 32 lanes of a warp are to carry this out together, and lane {missing} does not");
            self.find(warp, active, Kind::DivergentWarp, pc, detail);
            return false;
        }
        match matrix {
            Matrix::Multiply { product, a, b, c, d } => self.multiply(*product, a, b, c, d),
            Matrix::Rows { rows, fragments, to_rows, transposes } => {
                self.rows(rows, fragments, *to_rows, *transposes);
            }
            Matrix::Transpose { target, source } => {
                let matrix = transposed(of_fragment(self.registers.narrow.get(*source)));
                *self.registers.narrow.get_mut(*target) = fragment_of(&matrix);
            }
            Matrix::Group { product, factors, sum, adds } => {
                return self.is_group(warp, pc) && self.multiply_group(*product, factors, sum, *adds, warp, pc);
            }
            Matrix::Together => {}
        }
        true
    }

    fn rows(&mut self, rows: &[u32; 4], fragments: &[u32], to_rows: bool, transposes: bool) {
        let turned = |matrix| if transposes { transposed(matrix) } else { matrix };
        let narrow = &mut self.registers.narrow;
        let mut words = rows.map(|slot| *narrow.get(slot));
        for (number, fragment) in fragments.iter().enumerate() {
            let lane = |row: usize| 8 * number + row;
            if to_rows {
                let matrix = turned(of_fragment(narrow.get(*fragment)));
                for (row, elements) in matrix.iter().enumerate() {
                    for (word, pair) in words.iter_mut().zip(elements.chunks(2)) {
                        word[lane(row)] = u32::from(pair[0]) | u32::from(pair[1]) << 16;
                    }
                }
            } else {
                let matrix = std::array::from_fn(|row| {
                    std::array::from_fn(|column| (words[column / 2][lane(row)] >> (16 * (column % 2))) as u16)
                });
                *narrow.get_mut(*fragment) = fragment_of(&turned(matrix));
            }
        }
        if to_rows {
            rows.iter().zip(words).for_each(|(slot, words)| *narrow.get_mut(*slot) = words);
        }
    }

    /// The elements of a matrix, row by row.
    pub(super) fn gathered(&self, fragment: &Fragment) -> Vec<f64> {
        let layout = fragment.layout;
        let (bits, each) = (layout.number.bits(), layout.number.each());
        let mut all = vec![0.0; (layout.rows * layout.columns) as usize];
        for (register, (class, slot)) in (0..layout.registers()).zip(&fragment.registers) {
            for lane in 0..32 {
                let word = match class {
                    Class::Wide => self.registers.wide.get(*slot)[lane as usize],
                    _ => self.registers.narrow.get(*slot)[lane as usize].into(),
                };
                for element in 0..each {
                    let value = layout.number.value(word >> (element * bits));
                    if let Some(cell) = all.get_mut(layout.index(register, element, lane)) {
                        *cell = value;
                    }
                }
            }
        }
        all
    }

    fn multiply(&mut self, product: Product, a: &Fragment, b: &Fragment, c: &Fragment, d: &Fragment) {
        let [left, right, mut sum] = [a, b, c].map(|fragment| self.gathered(fragment));
        add_product(product, &left, &right, &mut sum, [a.layout.columns, c.layout.columns]);
        self.scatter(product, d, &sum);
    }

    /// Puts elements that stand row by row into a matrix.
    pub(super) fn scatter(&mut self, product: Product, fragment: &Fragment, all: &[f64]) {
        let layout = fragment.layout;
        let bits = |value: f64| match (layout.number, product) {
            // No sum of integers passes what a double holds exactly.
            (Number::Signed(_), Product::Saturating) => u64::from(value as i32 as u32),
            (Number::Signed(_), _) => u64::from(value as i64 as u32),
            (number, _) => number.rounded(value),
        };
        for (register, (class, slot)) in (0..layout.registers()).zip(&fragment.registers) {
            let words: [u64; 32] = std::array::from_fn(|lane| {
                (0..layout.number.each()).fold(0, |word, element| {
                    let value = all.get(layout.index(register, element, lane as u32)).copied().unwrap_or_default();
                    word | bits(value) << (element * layout.number.bits())
                })
            });
            match class {
                Class::Wide => Wide::set(&mut self.registers, *slot, u32::MAX, &words),
                _ => Narrow::set(&mut self.registers, *slot, u32::MAX, &words.map(|word| word as u32)),
            }
        }
    }
}

/// Adds a product of two matrices to a third one, all of them row by row: the columns of the first and of the others.
pub(super) fn add_product(product: Product, left: &[f64], right: &[f64], sum: &mut [f64], [inner, columns]: [u32; 2]) {
    let (inner, columns) = (inner as usize, columns as usize);
    for (row, sums) in sum.chunks_mut(columns.max(1)).enumerate() {
        for (place, factor) in left[row * inner..][..inner].iter().enumerate() {
            let others = &right[place * columns..][..columns];
            match product {
                Product::Plain | Product::Saturating | Product::And => {
                    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += factor * other);
                }
                Product::Xor => {
                    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += (factor - other).abs());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
