//! What a module's line table says of an entry: the folder of its sources, and where inlined code was called.

use ptx_machine::{Block, Function, Location, Module, Point, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// How deep calls may be inlined in one another.
const DEEPEST: usize = 64;

/// What the sources of an entry begin with: their folder, or the file where it has none. What is inlined from elsewhere, headers of the
/// toolkit mostly, counts where it was called.
pub fn within(module: &Module<'_>, function: &Function<'_>) -> String {
    let mut own = None;
    function.body.iter().for_each(|body| {
        each(body, &mut |location| {
            if location.inlined.is_none() && location.at.line > 0 && own.is_none() {
                own = module.files.get(&location.at.file).copied();
            }
        })
    });
    let file = own.unwrap_or_default();
    file.rfind('/').map_or(file, |end| &file[..=end]).to_owned()
}

fn each<'a>(block: &Block<'a>, see: &mut dyn FnMut(&Location<'a>)) {
    for statement in &block.statements {
        match statement {
            Statement::Location(location) => see(location),
            Statement::Block(inner) => each(inner, see),
            _ => {}
        }
    }
}

/// Where code was inlined: of a position the positions of its call, from the innermost to the entry's own, in a list for each place that it
/// was inlined at.
pub struct Inlined {
    callers: BTreeMap<Point, BTreeSet<Point>>,
    files: BTreeMap<u32, String>,
}

impl Inlined {
    /// What the module says.
    #[must_use]
    pub fn new(module: &Module<'_>) -> Self {
        let mut callers = BTreeMap::<_, BTreeSet<_>>::new();
        for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
            each(body, &mut |location| {
                if let Some((_, caller)) = location.inlined {
                    callers.entry(location.at).or_default().insert(caller);
                }
            });
        }
        let files = module.files.iter().map(|(number, file)| (*number, (*file).to_owned())).collect();
        Self { callers, files }
    }

    /// The calls by which code at a position came to be where it is.
    #[must_use]
    pub fn chains(&self, file: &str, line: u32, column: u32) -> BTreeSet<Vec<String>> {
        let numbers = self.files.iter().filter(|(_, own)| *own == file).map(|(number, _)| *number);
        let points = numbers.map(|file| Point { file, line, column });
        let mut chains = BTreeSet::new();
        points.for_each(|point| self.follow(point, &mut Vec::new(), &mut chains));
        chains.retain(|chain| !chain.is_empty());
        chains
    }

    fn follow(&self, point: Point, chain: &mut Vec<String>, chains: &mut BTreeSet<Vec<String>>) {
        match self.callers.get(&point).filter(|_| chain.len() < DEEPEST && chains.len() < DEEPEST) {
            None => {
                chains.insert(chain.clone());
            }
            Some(callers) => {
                for caller in callers {
                    let file = self.files.get(&caller.file).map_or("?", String::as_str);
                    chain.push(format!("{file}:{}:{}", caller.line, caller.column));
                    self.follow(*caller, chain, chains);
                    chain.pop();
                }
            }
        }
    }
}
