// The command line: names, options, help texts. What a command does is loaded when it runs.

import { Command, CommanderError, Option } from 'commander'
import { usageError } from './command-error.ts'
import type { AuthStatusOptions } from './commands/auth-status.ts'
import type { CallCommandOptions } from './commands/call.ts'
import type { AddCommandOptions } from './commands/entries.ts'
import type { ExplainCommandOptions } from './commands/explain.ts'
import type { LoginCommandOptions } from './commands/login.ts'
import type { ServeCommandOptions } from './commands/serve.ts'
import type { ListingCommandOptions } from './commands/tools.ts'
import type { CommandContext, GlobalOptions } from './context.ts'
import { EXIT, EXIT_MEANINGS, type ExitCode } from './exit-codes.ts'
import { VERSION } from './version.ts'

/** Makes the context of a command from its name and its options, once they are known. */
export type MakeContext = (command: string, options: GlobalOptions & { readonly color: boolean }) => CommandContext

/** What the program needs of the world. */
export interface ProgramShell {
  readonly makeContext: MakeContext
  /** Takes help texts. */
  readonly writeOut: (text: string) => void
}

/** Longest wait for servers, in milliseconds: one day. */
const WAIT_MS_MAX = 86_400_000

/**
 * Parses the command line and runs the command.
 * @throws {CommandError} for everything that ends a command early; a wrong command line is exit code 2.
 */
export async function runProgram(words: readonly string[], shell: ProgramShell): Promise<ExitCode> {
  let exitCode: ExitCode = EXIT.ok
  const program = buildProgram(shell, givenCommand(words), (code) => {
    exitCode = code
  })
  if (words.length === 0) {
    program.outputHelp()
    return EXIT.ok
  }
  try {
    await program.parseAsync([...words], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    // Help and version end by "throwing", too.
    if (error.exitCode === 0) return EXIT.ok
    const fault = error.code === 'commander.help' ? 'a command is missing' : error.message.replace(/^error: /, '')
    throw usageError(`${fault}\n(convoke --help explains the commands)`)
  }
  return exitCode
}

/** The global options as commander gives them: what was not given is absent. */
type GivenOptions = Omit<GlobalOptions, 'json' | 'strict' | 'server'> &
  Partial<Pick<GlobalOptions, 'json' | 'strict' | 'server'>> & { readonly color: boolean }

type Run = (context: CommandContext) => Promise<ExitCode>

type Register = (program: Command, run: RunCommand) => void

/** Who describes a command. A short run describes only the one it is for. */
const GROUPS: readonly (readonly [readonly string[], Register])[] = [
  [['tools', 'status'], addListings],
  [['explain', 'plan'], addReasons],
  [['call'], addCall],
  [['resources', 'read', 'prompts', 'prompt'], addReading],
  [['add', 'list', 'get', 'remove'], addEntries],
  [['login', 'logout', 'auth'], addSignIns],
  [['serve'], addServe],
]

/** The first word that is neither an option nor the value of one. */
function givenCommand(words: readonly string[]): string | undefined {
  let takesValue = false
  for (const word of words) {
    if (!takesValue && !word.startsWith('-')) return word
    takesValue = !takesValue && ['--config', '--data-dir', '--wait', '--server'].includes(word)
  }
  return undefined
}

function buildProgram(shell: ProgramShell, given: string | undefined, finish: (code: ExitCode) => void): Command {
  const program = new Command('convoke')
  /** Every action ends in here: the context is made of the options of the whole line. */
  const run = async (command: Command, action: Run): Promise<void> => {
    const { json = false, strict = false, server = [], ...rest } = command.optsWithGlobals<GivenOptions>()
    finish(await action(shell.makeContext(command.name(), { ...rest, json, strict, server })))
  }
  program
    .description('Connects to every MCP server you have configured: list their tools, call them, serve them as one.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain a command')
    .helpCommand('help [command]', 'explain a command')
    .configureHelp({ showGlobalOptions: true, sortSubcommands: false })
    .configureOutput({ writeOut: shell.writeOut, writeErr: () => {} })
    .exitOverride()
  addGlobalOptions(program)
  const own = GROUPS.filter(([names]) => given !== undefined && names.includes(given))
  for (const [, register] of own.length > 0 ? own : GROUPS) register(program, run)
  program.addHelpText('after', afterHelp())
  return program
}

function addGlobalOptions(program: Command): void {
  program
    .option('--config <file>', 'also read this configuration file; its servers replace those of the same name')
    .option('--data-dir <folder>', 'keep state and cache here in place of the usual folders')
    .option('--json', 'answer in JSON, on stdout')
    .addOption(
      new Option('--wait <ms>', 'longest wait for servers to start, in milliseconds')
        .default(30_000)
        .argParser((text) => milliseconds('--wait', text)),
    )
    .option('--server <name>', 'only this server (may be given more than once)', collect)
    .option('--strict', 'exit with 3 when any enabled server is not available')
    .option('--no-color', 'no colours (also with NO_COLOR set)')
}

const collect = (value: string, before: readonly string[] = []): readonly string[] => [...before, value]

function milliseconds(option: string, text: string, min = 0): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= WAIT_MS_MAX) return value
  throw usageError(`${option} takes a whole number of milliseconds from ${min} to ${WAIT_MS_MAX}.`)
}

type RunCommand = (command: Command, action: Run) => Promise<void>

function addListings(program: Command, run: RunCommand): void {
  program
    .command('tools')
    .description('list the tools of every server, as `convoke call` takes them')
    .option('--live', 'start every server and wait for it, also those whose tools are known')
    .addHelpText('after', TOOLS_HELP)
    .action(async (options: ListingCommandOptions, command: Command) => {
      const { runTools } = await import('./commands/tools.ts')
      await run(command, (context) => runTools(context, options))
    })
  program
    .command('status')
    .description('show the state of every server, since when, and why it is not ready')
    .option('--live', 'start every server, also those that sleep until they are needed')
    .addHelpText('after', STATUS_HELP)
    .action(async (options: ListingCommandOptions, command: Command) => {
      const { runStatus } = await import('./commands/status.ts')
      await run(command, (context) => runStatus(context, options))
    })
}

const TOOLS_HELP = `
Tools that an earlier run has listed are shown at once, marked as cached; a call checks them with their server.
Servers that are not available are named on stderr with their reason; the others are listed all the same.

  convoke tools
  convoke tools --live
  convoke tools --server github --json`

const STATUS_HELP = `
A server whose tools are known sleeps until it is needed (dormant); it is not started for this.

  convoke status
  convoke status --live --strict     for a health check: exit code 3 unless every server is ready`

function addReasons(program: Command, run: RunCommand): void {
  program
    .command('explain')
    .description('tell why a server or a tool is as it is: where it comes from, its state, its names, its filter')
    .argument('<name>', 'a server, SERVER/TOOL, a flat name SERVER__TOOL, or a tool as its server calls it')
    .option('--no-start', 'start nothing; tell only what is known')
    .addHelpText('after', EXPLAIN_HELP)
    .action(async (name: string, options: ExplainCommandOptions, command: Command) => {
      const { runExplain } = await import('./commands/explain.ts')
      await run(command, (context) => runExplain(context, name, options))
    })
  program
    .command('plan')
    .description('tell what would be started, kept, put off or ended, and why; starts nothing')
    .addHelpText('after', PLAN_HELP)
    .action(async (_options: object, command: Command) => {
      const { runPlan } = await import('./commands/plan.ts')
      await run(command, runPlan)
    })
}

const EXPLAIN_HELP = `
Only servers that the name may belong to are started, and only if their tools are not known. Everything that the
name may mean is shown.

  convoke explain github
  convoke explain github/create_issue
  convoke explain create_issue --no-start --json`

const PLAN_HELP = `
Without --config: what starting your configuration would do.
With --config FILE: what would change if FILE took the place of your configuration, as if every server of yours were
connected now. (Only here FILE takes its place; everywhere else it is read on top.)
Of what changed the fields are named, never their values.

  convoke plan
  convoke plan --config new.json --json`

function addCall(program: Command, run: RunCommand): void {
  program
    .command('call')
    .description('call one tool; only its server is started')
    .argument('<tool>', 'SERVER/TOOL, or the flat name SERVER__TOOL')
    .argument('[arguments...]', 'key=value, key:=JSON, or - to read a JSON object from stdin')
    .option('--args <json>', 'all arguments as a JSON object, or @FILE')
    .option('--answers <json>', 'answers, as a JSON object, to a form the server may show')
    .addOption(
      new Option('--timeout <ms>', 'longest call, in milliseconds').argParser((text) =>
        milliseconds('--timeout', text, 1),
      ),
    )
    .addHelpText('after', CALL_HELP)
    .action(async (tool: string, words: string[], options: CallCommandOptions, command: Command) => {
      const { runCall } = await import('./commands/call.ts')
      await run(command, (context) => runCall(context, tool, words, options))
    })
}

const CALL_HELP = `
Values are read as the type that the tool declares: numbers, true and false, null, and JSON for lists and objects.
A list may also be given by repeating its key. The answer goes to stdout, everything else to stderr.

  convoke call weather/forecast city=Berlin days=3
  convoke call files/read_multiple_files paths=a.txt paths=b.txt
  convoke call github/create_issue --args '{"title": "Broken", "labels": ["bug"]}'
  jq -n '{city: "Berlin"}' | convoke call weather/forecast - --json`

function addReading(program: Command, run: RunCommand): void {
  program
    .command('resources')
    .description('list the resources of every server, and their templates')
    .action(async (_options: object, command: Command) => {
      const { runResources } = await import('./commands/resources.ts')
      await run(command, runResources)
    })
  program
    .command('read')
    .description('read one resource')
    .argument('<uri>', 'the URI as `convoke resources` lists it')
    .option('-o, --output <file>', 'write the exact bytes into a file')
    .addHelpText(
      'after',
      '\nA URI that several servers offer needs --server.\n\n  convoke read file:///notes.txt --server files\n  convoke read img://logo -o logo.png',
    )
    .action(async (uri: string, options: { output?: string }, command: Command) => {
      const { runRead } = await import('./commands/resources.ts')
      await run(command, (context) => runRead(context, uri, options))
    })
  program
    .command('prompts')
    .description('list the prompts of every server')
    .action(async (_options: object, command: Command) => {
      const { runPrompts } = await import('./commands/prompts.ts')
      await run(command, runPrompts)
    })
  program
    .command('prompt')
    .description('show the messages of one prompt')
    .argument('<prompt>', 'SERVER/PROMPT, or the flat name SERVER__PROMPT')
    .argument('[arguments...]', 'key=value')
    .option('--args <json>', 'all arguments as a JSON object')
    .action(async (prompt: string, words: string[], options: { args?: string }, command: Command) => {
      const { runPrompt } = await import('./commands/prompts.ts')
      await run(command, (context) => runPrompt(context, prompt, words, options))
    })
}

function addEntries(program: Command, run: RunCommand): void {
  program
    .command('add')
    .description('add a server to your configuration')
    .argument('<name>', 'any printable text of up to 128 characters')
    .argument('[command...]', 'the program and its arguments, behind --')
    .option('--url <url>', 'the address of an HTTP server, in place of a command')
    .option('--entry <json>', 'a whole entry as JSON, as other clients write it')
    .option('--env <name=value>', 'a variable for the program (may be given more than once)', collect)
    .option('--env-var <name>', 'a variable that is passed on from your environment (more than once)', collect)
    .option('--header <name=value>', 'a header of every request (more than once)', collect)
    .option('--bearer-token-env-var <name>', 'the variable that holds a bearer token')
    .option('--cwd <folder>', 'working directory of the program')
    .option('--replace', 'replace an entry of the same name')
    .option('--no-probe', 'do not ask the server at --url whether it wants a sign-in')
    .addHelpText('after', ADD_HELP)
    .action(async (name: string, words: string[], options: AddCommandOptions, command: Command) => {
      const { runAdd } = await import('./commands/entries.ts')
      await run(command, (context) => runAdd(context, name, words, options))
    })
  program
    .command('list')
    .description('list the configured servers and where they come from; starts nothing')
    .action(async (_options: object, command: Command) => {
      const { runList } = await import('./commands/entries.ts')
      await run(command, runList)
    })
  program
    .command('get')
    .description('show one entry and what is in force for it; starts nothing')
    .argument('<name>')
    .action(async (name: string, _options: object, command: Command) => {
      const { runGet } = await import('./commands/entries.ts')
      await run(command, (context) => runGet(context, name))
    })
  program
    .command('remove')
    .description('remove a server from your configuration')
    .argument('<name>')
    .action(async (name: string, _options: object, command: Command) => {
      const { runRemove } = await import('./commands/entries.ts')
      await run(command, (context) => runRemove(context, name))
    })
}

const ADD_HELP = `
Written to your own file, or to the one of --config; comments and order of the file stay. Nothing is started.
A server with an address is asked, for 5 s at most, whether it wants a sign-in; on a terminal you can sign in at once.
Keep secrets out of the file: '\${NAME}' in single quotes is read from your environment at every start.

  convoke add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs
  convoke add linear --url https://mcp.linear.app/mcp
  convoke add github --url https://api.githubcopilot.com/mcp/ --bearer-token-env-var GITHUB_TOKEN
  convoke add db --env 'PGPASSWORD=\${PGPASSWORD}' -- npx -y some-postgres-server`

/** Shorter limits would only be a way to fail, in milliseconds. */
const PERSON_MS_MIN = 1_000

function addSignIns(program: Command, run: RunCommand): void {
  program
    .command('login')
    .description('sign in to a server with your browser, and keep that')
    .argument('<server>')
    .option('--scopes <list>', 'ask for these scopes, separated by commas; "" asks for none')
    .option('--no-browser', 'open no browser; paste what yours ended at, also through a pipe')
    .addOption(
      new Option('--timeout <ms>', 'longest wait for you, in milliseconds (default 300000)').argParser((text) =>
        milliseconds('--timeout', text, PERSON_MS_MIN),
      ),
    )
    .option('--store <store>', 'keep it in the keyring or in a file (default auto: the keyring if it works)')
    .addHelpText('after', LOGIN_HELP)
    .action(async (server: string, options: LoginCommandOptions, command: Command) => {
      const { runLogin } = await import('./commands/login.ts')
      await run(command, (context) => runLogin(context, server, options))
    })
  program
    .command('logout')
    .description('forget the sign-in to a server, and give its tokens back')
    .argument('<server>')
    .action(async (server: string, _options: object, command: Command) => {
      const { runLogout } = await import('./commands/login.ts')
      await run(command, (context) => runLogout(context, server))
    })
  program
    .command('auth')
    .description('tell about sign-ins')
    .command('status')
    .description('tell who is signed in where, until when, where that is kept, and what to do')
    .option('--probe', 'ask servers whether they want a sign-in, and try the keyring')
    .option('--all', 'list also servers that need no sign-in')
    .addHelpText('after', AUTH_STATUS_HELP)
    .action(async (options: AuthStatusOptions, command: Command) => {
      const { runAuthStatus } = await import('./commands/auth-status.ts')
      await run(command, (context) => runAuthStatus(context, options))
    })
}

const LOGIN_HELP = `
The address to sign in at is always shown, on stderr. On a terminal you can paste what the browser ended at, when it
cannot come back to this machine. What was there before is used until you have signed in, and stays if you do not.
Exit code 5: nobody came in time. Where sign-ins are kept for all commands: CONVOKE_CREDENTIALS_STORE=auto|keyring|file.

  convoke login linear
  convoke login linear --scopes read,write
  convoke login linear --no-browser          on a machine that your browser is not on`

const AUTH_STATUS_HELP = `
No server is started and nothing is renewed. Without --probe nobody is asked anything.

  convoke auth status
  convoke auth status --probe --json`

function addServe(program: Command, run: RunCommand): void {
  program
    .command('serve')
    .description('serve all servers as one MCP server, over HTTP or stdio')
    .option('--http <host:port>', 'listen here (default 127.0.0.1:7337); any address but loopback needs a token')
    .option('--stdio', 'speak over stdin and stdout in place of HTTP')
    .option('--token-env <name>', 'the variable that holds the bearer token clients must send')
    .option('--require-token', 'demand a token on loopback, too; one is made up unless --token-env names it')
    .option(
      '--allow-host <host>',
      'also answer to this name in the Host header, as behind a proxy (more than once)',
      collect,
    )
    .option('--allow-origin <origin>', 'let pages of this web origin call (more than once)', collect)
    .addOption(new Option('--token <token>').hideHelp())
    .option('--transparent <server>', 'serve this one server alone, with its own names')
    .addHelpText('after', SERVE_HELP)
    .action(async (options: ServeCommandOptions, command: Command) => {
      const { runServe } = await import('./commands/serve.ts')
      await run(command, (context) => runServe(context, options))
    })
}

const SERVE_HELP = `
Without any configuration it serves three sample servers in a temporary folder and writes nothing else.
Clients of the 2025 and 2026 revisions of MCP are served. Ctrl-C or SIGTERM ends it after the calls in flight.
It follows the configuration: what is edited is applied while it serves, and what became of each server is said.

  convoke serve
  convoke serve --http 127.0.0.1:8080 --require-token
  convoke serve --stdio --server github          as a command in a client's own configuration`

function afterHelp(): string {
  const codes = EXIT_MEANINGS.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`)
  return `
Exit codes:
${codes.join('\n')}

Start here:
  convoke add files -- npx -y @modelcontextprotocol/server-filesystem ~/docs
  convoke tools
  convoke call files/list_directory path=~/docs
  convoke serve`
}
