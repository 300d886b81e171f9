//! From tokens to a module: what stands in its own scope.

mod body;
mod number;

use crate::ast::{Constant, Function, Initializer, Module, StateSpace, Type, Variable};
use crate::error::ParseError;
use crate::lex::{Kind, Lexer, Token};
use number::DEEPEST;

/// Dimensions of an array, and numbers behind a directive, at most.
const MOST_NUMBERS: usize = 64;

/// Reads a module.
///
/// # Errors
/// Where the text is no PTX: the line, the column and the token.
pub fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    Parser::new(text)?.module()
}

/// Reads tokens, one ahead.
pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The token that comes next.
    token: Token<'a>,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str) -> Result<Self, ParseError> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token })
    }

    /// Takes the next token.
    fn advance(&mut self) -> Result<Token<'a>, ParseError> {
        let token = self.token;
        self.token = self.lexer.next()?;
        Ok(token)
    }

    /// Whether this mark or directive comes next.
    fn is(&self, text: &str) -> bool {
        self.token.text == text && matches!(self.token.kind, Kind::Mark | Kind::Dotted)
    }

    /// Takes this mark if it comes next.
    fn takes(&mut self, text: &str) -> Result<bool, ParseError> {
        let is_next = self.is(text);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expect(&mut self, text: &str) -> Result<Token<'a>, ParseError> {
        if self.is(text) {
            return self.advance();
        }
        Err(self.error(format!("`{text}` should stand here")))
    }

    fn word(&mut self, what: &str) -> Result<Token<'a>, ParseError> {
        if self.token.kind == Kind::Word {
            return self.advance();
        }
        Err(self.error(format!("{what} should stand here")))
    }

    /// An error at the next token.
    fn error(&self, detail: impl AsRef<str>) -> ParseError {
        ParseError::new(self.token.place, format!("{}: {}", self.token.shown(), detail.as_ref()))
    }

    fn module(&mut self) -> Result<Module<'a>, ParseError> {
        let mut module = Module { address_size: 32, ..Module::default() };
        while self.token.kind != Kind::End {
            self.item(&mut module)?;
        }
        if module.version == (0, 0) {
            return Err(self.error("the module has no `.version`: it should begin with one"));
        }
        Ok(module)
    }

    /// A directive of the module's scope.
    fn item(&mut self, module: &mut Module<'a>) -> Result<(), ParseError> {
        if self.takes(";")? {
            return Ok(());
        }
        match self.token.text {
            ".version" => {
                self.advance()?;
                let token = self.advance()?;
                let parts = token.text.split_once('.');
                let version = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
                let error = || ParseError::new(token.place, format!("{} is no version such as 7.0", token.shown()));
                module.version = version.ok_or_else(error)?;
            }
            ".target" => {
                self.advance()?;
                module.target.push(self.word("an architecture such as sm_80")?.text);
                while self.takes(",")? {
                    module.target.push(self.word("an architecture, or an option of the target")?.text);
                }
            }
            ".address_size" => {
                self.advance()?;
                module.address_size = self.small_number("the size of addresses")?;
            }
            ".file" => {
                self.advance()?;
                let number = self.small_number("the number of a file")?;
                if self.token.kind != Kind::Text {
                    return Err(self.error("the name of a file should stand here, in quotation marks"));
                }
                module.files.insert(number, self.advance()?.text);
                while self.takes(",")? {
                    self.number("a file's time or size")?;
                }
            }
            ".section" => {
                while !self.is("{") {
                    self.some("`{`")?;
                }
                self.skip_braces()?;
            }
            ".pragma" | ".alias" => self.skip_statement()?,
            _ => self.declaration(module)?,
        }
        Ok(())
    }

    /// Takes any token but the end, which should be no end before this `mark`.
    fn some(&mut self, mark: &str) -> Result<Token<'a>, ParseError> {
        match self.token.kind {
            Kind::End => Err(self.error(format!("{mark} is missing"))),
            _ => self.advance(),
        }
    }

    /// Passes what stands in braces.
    fn skip_braces(&mut self) -> Result<(), ParseError> {
        self.expect("{")?;
        let mut depth = 1;
        while depth > 0 {
            match self.some("`}`")? {
                Token { kind: Kind::Mark, text: "{", .. } => depth += 1,
                Token { kind: Kind::Mark, text: "}", .. } => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    /// Passes a statement to its semicolon.
    fn skip_statement(&mut self) -> Result<(), ParseError> {
        while !self.takes(";")? {
            self.some("`;`")?;
        }
        Ok(())
    }

    /// A variable, an entry or a function, with what stands before it.
    fn declaration(&mut self, module: &mut Module<'a>) -> Result<(), ParseError> {
        let mut is_extern = false;
        while matches!(self.token.text, ".extern" | ".visible" | ".weak" | ".common") {
            is_extern |= self.advance()?.text == ".extern";
        }
        match self.token.text {
            ".entry" | ".func" => module.functions.push(self.function()?),
            _ if self.is_space() => {
                self.variables(is_extern, &mut module.variables)?;
                self.expect(";")?;
            }
            _ => return Err(self.error("a directive, a variable, an `.entry` or a `.func` should stand here")),
        }
        Ok(())
    }

    fn is_space(&self) -> bool {
        self.token.kind == Kind::Dotted && StateSpace::named(&self.token.text[1..]).is_some()
    }

    fn function(&mut self) -> Result<Function<'a>, ParseError> {
        let keyword = self.advance()?;
        let mut directives = Vec::new();
        self.directives(&mut directives)?;
        let returns = if self.is("(") { self.parameters()? } else { Vec::new() };
        let name = self.word("the name of the function")?;
        let parameters = if self.is("(") { self.parameters()? } else { Vec::new() };
        self.directives(&mut directives)?;
        let body = if self.is("{") { Some(self.block(0)?) } else { None };
        if body.is_none() {
            self.expect(";")?;
        }
        let is_entry = keyword.text == ".entry";
        Ok(Function { name: name.text, is_entry, returns, parameters, directives, body, place: keyword.place })
    }

    /// `.maxntid` and its like.
    fn directives(&mut self, directives: &mut Vec<(&'a str, Vec<u64>)>) -> Result<(), ParseError> {
        while self.token.kind == Kind::Dotted {
            let name = self.advance()?.text;
            if name == ".pragma" {
                self.skip_statement()?;
                continue;
            }
            if name == ".attribute" {
                self.skip_parentheses()?;
                continue;
            }
            let mut numbers = Vec::new();
            while self.token.kind == Kind::Number && numbers.len() < MOST_NUMBERS {
                numbers.push(self.number("the number of a directive")?);
                if !self.takes(",")? {
                    break;
                }
            }
            directives.push((name, numbers));
        }
        Ok(())
    }

    fn skip_parentheses(&mut self) -> Result<(), ParseError> {
        self.expect("(")?;
        while !self.takes(")")? {
            self.some("`)`")?;
        }
        Ok(())
    }

    fn parameters(&mut self) -> Result<Vec<Variable<'a>>, ParseError> {
        let mut parameters = Vec::new();
        self.expect("(")?;
        while !self.takes(")")? {
            if !self.is_space() {
                return Err(self.error("a parameter should stand here: `.param` or `.reg`, a type and a name"));
            }
            self.variables(false, &mut parameters)?;
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        Ok(parameters)
    }

    /// The variables that stand behind one state space and type.
    fn variables(&mut self, is_extern: bool, variables: &mut Vec<Variable<'a>>) -> Result<(), ParseError> {
        let start = self.advance()?;
        let space = StateSpace::named(&start.text[1..]).unwrap_or(StateSpace::Other);
        let (mut align, mut vector, mut ty) = (None, 1, None);
        while self.token.kind == Kind::Dotted {
            let name = self.advance()?.text;
            match name {
                ".align" => align = Some(self.number("an alignment")?),
                ".v2" => vector = 2,
                ".v4" => vector = 4,
                ".v8" => vector = 8,
                ".attribute" => self.skip_parentheses()?,
                // Of a pointer: what it points to.
                ".ptr" | ".global" | ".shared" | ".const" | ".local" if space == StateSpace::Parameter => {
                    if self.is(".align") {
                        self.advance()?;
                        self.number("an alignment")?;
                    }
                }
                _ => ty = Type::named(&name[1..]).or(ty),
            }
        }
        let Some(ty) = ty else { return Err(self.error("no type is known of what stands here: name one before it")) };
        loop {
            let name = self.word("the name of a variable")?;
            let mut variable = Variable {
                name: name.text,
                range: None,
                space,
                ty,
                vector,
                align: align.unwrap_or_else(|| (ty.bytes() * u64::from(vector)).max(1)),
                dimensions: Vec::new(),
                initializer: None,
                is_extern,
                place: name.place,
            };
            if self.takes("<")? {
                variable.range = Some(self.small_number("the number of registers")?);
                self.expect(">")?;
            }
            while self.takes("[")? {
                let dimension = if self.is("]") { 0 } else { self.number("the dimension of an array")? };
                variable.dimensions.push(dimension);
                self.expect("]")?;
                if variable.dimensions.len() > MOST_NUMBERS {
                    return Err(self.error(format!("an array has more than {MOST_NUMBERS} dimensions")));
                }
            }
            if self.takes("=")? {
                variable.initializer = Some(self.initializer(0)?);
            }
            variables.push(variable);
            // In the parameters of a function a comma leads to the next one's state space.
            if !self.is(",") || !self.comma_leads_to_a_name()? {
                return Ok(());
            }
            self.advance()?;
        }
    }

    /// Whether a name comes behind the comma that comes next.
    fn comma_leads_to_a_name(&self) -> Result<bool, ParseError> {
        Ok(self.lexer.clone().next()?.kind == Kind::Word)
    }

    fn initializer(&mut self, depth: usize) -> Result<Initializer<'a>, ParseError> {
        if depth > DEEPEST {
            return Err(self.error(format!("lists are nested deeper than {DEEPEST}")));
        }
        if self.takes("{")? {
            let mut list = Vec::new();
            while !self.takes("}")? {
                list.push(self.initializer(depth + 1)?);
                if !self.is("}") {
                    self.expect(",")?;
                }
            }
            return Ok(Initializer::List(list));
        }
        if self.token.kind == Kind::Word && self.token.text != "WARP_SZ" {
            let mut name = self.advance()?;
            if name.text == "generic" && self.takes("(")? {
                name = self.word("the name of a variable")?;
                self.expect(")")?;
            }
            let offset = if self.is("+") || self.is("-") { self.offset()? } else { 0 };
            return Ok(Initializer::Address(name.text, offset));
        }
        Ok(Initializer::Value(self.expression(0)?))
    }

    /// `+4` behind a name.
    fn offset(&mut self) -> Result<i64, ParseError> {
        match self.expression(0)? {
            Constant::Integer(value) => Ok(value.cast_signed()),
            _ => Err(self.error("an offset is no integer")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
