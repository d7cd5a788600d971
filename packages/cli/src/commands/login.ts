// login and logout: the sign-in of one server. No server is started here.
import { cleanLine, type Host, type ServerDefinition, type SignedOut } from '@convoke/host'
import { CommandError, usageError } from '../command-error.ts'
import { readConfiguration, requireServers } from '../configuration.ts'
import { openHost } from '../connect.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { defined } from '../report.ts'
import { shellWord } from '../shell-word.ts'
import { signedInLines, signInHere } from '../sign-in-here.ts'
import { styled } from '../terminal.ts'

/** What `convoke login` takes besides the server. */
export interface LoginCommandOptions {
  /** Separated by commas or spaces; an empty text asks for none. */
  readonly scopes?: string
  /** `--no-browser` makes it false. */
  readonly browser?: boolean
  /** For the person, in milliseconds. */
  readonly timeout?: number
  readonly store?: string
}

/** `convoke login`: lets the person sign in to one server, and keeps that. */
export async function runLogin(
  context: CommandContext,
  name: string,
  { scopes, browser = true, timeout: timeoutMs, store }: LoginCommandOptions,
): Promise<ExitCode> {
  const { terminal, options } = context
  const wanted = scopes === undefined ? undefined : readScopes(scopes)
  await using host = await hostOf(context, name, store)
  const signedIn = await signInHere(
    context,
    { host, server: name },
    { scopes: wanted, way: browser ? 'browser' : 'paste', timeoutMs },
  )
  if (options.json) {
    const { server, issuer, subject, store: kept } = signedIn
    const row = { server, issuer, ...defined({ subject, scopes: signedIn.scopes }), store: kept }
    terminal.json({ version: JSON_VERSION, ...row })
    return EXIT.ok
  }
  const { data, notices } = signedInLines(signedIn)
  terminal.print(...data)
  for (const notice of notices) terminal.notice(notice)
  terminal.notice(styled('dim', `Try it: convoke tools --server ${shellWord(name)}`))
  return EXIT.ok
}

/** `convoke logout`: forgets the sign-in of one server, and tells its authorization server. */
export async function runLogout(context: CommandContext, name: string): Promise<ExitCode> {
  const { terminal, options, signal } = context
  await using host = await hostOf(context, name)
  const signedOut = await host.signOut(name, { signal })
  if (options.json) terminal.json({ version: JSON_VERSION, ...signedOut })
  else if (signedOut.wasSignedIn) {
    terminal.print('Signed out of ', styled('bold', cleanLine(name)))
    terminal.notice(REVOCATIONS[signedOut.revocation])
  } else terminal.print('Nobody was signed in to ', styled('bold', cleanLine(name)))
  return EXIT.ok
}

const REVOCATIONS: Readonly<Record<SignedOut['revocation'], string>> = {
  done: 'Its tokens are deleted here, and the authorization server has taken them back.',
  unsupported:
    'Its tokens are deleted here. The authorization server has no way to take tokens back: they are good until they end.',
  failed:
    'Its tokens are deleted here, but the authorization server could not be told: they may be good until they end. Its own pages may let you end them.',
  'nothing-to-revoke': 'There were no tokens.',
}

/** A host of this server alone, which starts it no more than any other. */
async function hostOf(context: CommandContext, name: string, store?: string): Promise<Host> {
  const definition = await requireServer(context, name)
  return openHost(context, { definitions: [definition] }, { start: [], store })
}

/** @throws {CommandError} exit code 2 for an unknown server, 4 for an entry that cannot be used. */
async function requireServer(context: CommandContext, name: string): Promise<ServerDefinition> {
  const loaded = await readConfiguration(context, [name])
  requireServers([name], loaded)
  const definition = loaded.definitions.find((one) => one.name === name)
  if (definition === undefined) throw usageError(`There is no server ${JSON.stringify(name)}.`)
  if (definition.problem === undefined) return definition
  throw new CommandError(EXIT.configuration, 'CONFIG_PROBLEM', definition.problem.message)
}

/** What a scope may be made of (RFC 6749, 3.3), without the comma that separates them here. */
const SCOPE = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]+$/

function readScopes(text: string): readonly string[] {
  const scopes = text.split(/[\s,]+/).filter((scope) => scope !== '')
  const odd = scopes.find((scope) => !SCOPE.test(scope))
  if (odd !== undefined) throw usageError(`--scopes: ${JSON.stringify(odd)} cannot be a scope.`)
  return [...new Set(scopes)]
}
