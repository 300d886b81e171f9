//! Where labels find room.

/// A rectangle: left, top, right, bottom.
pub(super) type Box = [f64; 4];

/// What is taken already.
#[derive(Default)]
pub(super) struct Taken(Vec<Box>);

impl Taken {
    pub(super) fn take(&mut self, of: Box) {
        self.0.push(of);
    }

    /// Whether nothing stands there.
    pub(super) fn is_free(&self, [left, top, right, bottom]: Box) -> bool {
        !self.0.iter().any(|of| left < of[2] && of[0] < right && top < of[3] && of[1] < bottom)
    }
}

/// Places as near as can be to those wished for, in their order, `gap` apart, between two ends as far as there is room.
pub(super) fn spread(wished: &[f64], gap: f64, [first, last]: [f64; 2]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wished.len()).collect();
    order.sort_by(|a, b| wished[*a].total_cmp(&wished[*b]));
    // Blocks of labels that touch one another: the sum of the places wished for by their first, and how many they are.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    let start = |(sum, count): (f64, usize)| {
        let most = (last - gap * (count as f64 - 1.0)).max(first);
        (sum / count as f64).clamp(first, most)
    };
    for place in order.iter().map(|n| wished[*n]) {
        blocks.push((place, 1));
        while let [.., before, of] = blocks[..] {
            if start(before) + gap * before.1 as f64 <= start(of) {
                break;
            }
            blocks.truncate(blocks.len() - 2);
            let shifted = of.0 - gap * (before.1 * of.1) as f64;
            blocks.push((before.0 + shifted, before.1 + of.1));
        }
    }
    let placed = blocks.into_iter().flat_map(|block| (0..block.1).map(move |n| start(block) + gap * n as f64));
    let mut places = vec![0.0; wished.len()];
    order.into_iter().zip(placed).for_each(|(n, place)| places[n] = place);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_where_they_wish_or_a_line_apart() {
        assert_eq!(spread(&[10.0, 50.0], 14.0, [0.0, 100.0]), [10.0, 50.0]);
        assert_eq!(spread(&[50.0, 50.0], 14.0, [0.0, 100.0]), [43.0, 57.0]);
        assert_eq!(spread(&[99.0, 1.0, 98.0], 14.0, [0.0, 100.0]), [100.0, 1.0, 86.0]);
        assert_eq!(spread(&[], 14.0, [0.0, 100.0]), [0.0; 0]);
    }

    #[test]
    fn they_never_overlap() {
        let wished: Vec<f64> = (0..12).map(|n| f64::from(n * 37 % 50)).collect();
        let mut places = spread(&wished, 14.0, [0.0, 300.0]);
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 14.0 - 1e-9), "{places:?}");
    }

    #[test]
    fn what_is_taken_is_not_free() {
        let mut taken = Taken::default();
        taken.take([0.0, 0.0, 10.0, 10.0]);
        assert!(!taken.is_free([5.0, 5.0, 15.0, 15.0]) && taken.is_free([10.0, 0.0, 20.0, 10.0]));
    }
}
