//! What stands in a function: statements and operands.

use super::Parser;
use super::number::DEEPEST;
use crate::ast::{Block, Constant, Instruction, Location, Operand, Point, Statement};
use crate::error::ParseError;
use crate::lex::{Kind, Token};

impl<'a> Parser<'a> {
    /// Statements in braces.
    pub(super) fn block(&mut self, depth: usize) -> Result<Block<'a>, ParseError> {
        if depth > DEEPEST {
            return Err(self.error(format!("blocks are nested deeper than {DEEPEST}")));
        }
        self.expect("{")?;
        let mut block = Block::default();
        while !self.takes("}")? {
            self.statement(depth, &mut block)?;
        }
        Ok(block)
    }

    fn statement(&mut self, depth: usize, block: &mut Block<'a>) -> Result<(), ParseError> {
        let statement = match (self.token.kind, self.token.text) {
            (Kind::Mark, ";") => {
                self.advance()?;
                return Ok(());
            }
            (Kind::Mark, "{") => Statement::Block(self.block(depth + 1)?),
            (Kind::Mark, "@") | (Kind::Word, _) => match self.instruction_or_label()? {
                Some(statement) => statement,
                None => return Ok(()),
            },
            (Kind::Dotted, ".loc") => Statement::Location(self.location()?),
            (Kind::Dotted, ".pragma") => return self.skip_statement(),
            (Kind::Dotted, _) if self.is_space() => {
                self.variables(false, &mut block.variables)?;
                self.expect(";")?;
                return Ok(());
            }
            _ => return Err(self.error("a statement should stand here, or `}`")),
        };
        block.statements.push(statement);
        Ok(())
    }

    fn location(&mut self) -> Result<Location<'a>, ParseError> {
        self.advance()?;
        let at = self.point()?;
        let mut inlined = None;
        if self.takes(",")? {
            let keyword = self.word("`function_name`")?;
            if keyword.text != "function_name" {
                return Err(ParseError::new(
                    keyword.place,
                    format!("{}: `function_name` should stand here", keyword.shown()),
                ));
            }
            let name = match self.token.kind {
                Kind::Number => self.advance()?,
                _ => self.word("a label of the debug strings")?,
            };
            if self.takes("+")? {
                self.number("an offset")?;
            }
            self.expect(",")?;
            let keyword = self.word("`inlined_at`")?;
            if keyword.text != "inlined_at" {
                return Err(ParseError::new(
                    keyword.place,
                    format!("{}: `inlined_at` should stand here", keyword.shown()),
                ));
            }
            inlined = Some((name.text, self.point()?));
        }
        Ok(Location { at, inlined })
    }

    fn point(&mut self) -> Result<Point, ParseError> {
        Ok(Point {
            file: self.small_number("the number of a file")?,
            line: self.small_number("a line")?,
            column: self.small_number("a column")?,
        })
    }

    fn instruction_or_label(&mut self) -> Result<Option<Statement<'a>>, ParseError> {
        let mut guard = None;
        let place = self.token.place;
        if self.takes("@")? {
            let negated = self.takes("!")?;
            guard = Some((self.word("the predicate of a guard")?.text, negated));
        }
        let opcode = self.word("an opcode")?;
        if guard.is_none() && self.takes(":")? {
            return self.label(opcode).map(Some);
        }
        let start = self.token.start;
        let mut end = start;
        while self.token.kind == Kind::Dotted {
            let token = self.advance()?;
            end = token.start + token.text.len();
        }
        let modifiers = self.lexer.text().get(start..end).unwrap_or_default();
        let mut operands = Vec::new();
        while !self.takes(";")? {
            operands.push(self.operand(0)?);
            if !self.is(";") {
                self.expect(",")?;
            }
        }
        let opcode = opcode.text;
        Ok(Some(Statement::Instruction(Instruction { guard, opcode, modifiers, operands, place })))
    }

    /// What stands behind a label's colon, if it belongs to it.
    fn label(&mut self, name: Token<'a>) -> Result<Statement<'a>, ParseError> {
        if self.is(".branchtargets") {
            self.advance()?;
            let mut targets = Vec::new();
            while !self.takes(";")? {
                targets.push(self.word("a label")?.text);
                if !self.is(";") {
                    self.expect(",")?;
                }
            }
            return Ok(Statement::BranchTargets(name.text, targets, name.place));
        }
        if self.is(".callprototype") || self.is(".calltargets") {
            self.skip_statement()?;
            return Ok(Statement::CallPrototype(name.text, name.place));
        }
        Ok(Statement::Label(name.text, name.place))
    }

    fn operand(&mut self, depth: usize) -> Result<Operand<'a>, ParseError> {
        if depth > DEEPEST {
            return Err(self.error(format!("operands are nested deeper than {DEEPEST}")));
        }
        let operand = match (self.token.kind, self.token.text) {
            (Kind::Word, "_") => {
                self.advance()?;
                Operand::Sink
            }
            (Kind::Word, name) if name != "WARP_SZ" => {
                self.advance()?;
                match (self.token.kind, self.token.text) {
                    (Kind::Dotted, component) => {
                        self.advance()?;
                        Operand::Component(name, &component[1..])
                    }
                    (Kind::Mark, "+" | "-") => Operand::Sum(name, self.offset()?),
                    _ => Operand::Name(name),
                }
            }
            (Kind::Mark, "{") => {
                self.advance()?;
                Operand::Vector(self.operands("}", depth)?)
            }
            (Kind::Mark, "[") => self.address(depth)?,
            (Kind::Mark, "(") if self.is_list()? => {
                self.advance()?;
                Operand::List(self.operands(")", depth)?)
            }
            (Kind::Mark, "!") if self.next_is_name()? => {
                self.advance()?;
                Operand::Not(self.word("a predicate")?.text)
            }
            (Kind::Mark, "-") if self.next_is_name()? => {
                self.advance()?;
                Operand::Negated(self.word("a register")?.text)
            }
            _ => Operand::Constant(self.expression(0)?),
        };
        if self.takes("|")? {
            let other = self.operand(depth + 1)?;
            return Ok(Operand::Pair(Box::new(operand), Box::new(other)));
        }
        Ok(operand)
    }

    /// Whether the parenthesis that comes next begins a list and no expression.
    fn is_list(&self) -> Result<bool, ParseError> {
        let mut lexer = self.lexer.clone();
        let first = lexer.next()?;
        let second = lexer.next()?;
        let ends = second.kind == Kind::Mark && matches!(second.text, "," | ")");
        Ok(first.kind == Kind::Word || first.text == ")" || first.kind == Kind::Number && ends)
    }

    fn next_is_name(&self) -> Result<bool, ParseError> {
        let next = self.lexer.clone().next()?;
        Ok(next.kind == Kind::Word && next.text != "WARP_SZ")
    }

    fn operands(&mut self, end: &str, depth: usize) -> Result<Vec<Operand<'a>>, ParseError> {
        let mut operands = Vec::new();
        while !self.takes(end)? {
            operands.push(self.operand(depth + 1)?);
            if !self.is(end) {
                self.expect(",")?;
            }
        }
        Ok(operands)
    }

    fn address(&mut self, depth: usize) -> Result<Operand<'a>, ParseError> {
        self.expect("[")?;
        let mut base = None;
        let mut offset = 0;
        if self.token.kind == Kind::Word && self.token.text != "WARP_SZ" {
            base = Some(self.advance()?.text);
            if self.is("+") || self.is("-") {
                // `[a+-4]` is an expression too.
                offset = self.offset()?;
            }
        } else {
            match self.expression(0)? {
                Constant::Integer(value) => offset = value.cast_signed(),
                _ => return Err(self.error("an address is no integer")),
            }
        }
        let mut rest = Vec::new();
        if self.takes(",")? {
            rest = self.operands("]", depth)?;
        } else {
            self.expect("]")?;
        }
        Ok(Operand::Address(base, offset, rest))
    }
}
