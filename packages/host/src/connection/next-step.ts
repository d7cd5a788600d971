// What somebody can do about a failed start, as the end of its message. Pure.
import type { HostErrorCode } from '../base/index.ts'

/** What the way out depends on. */
export interface NextStepFacts {
  readonly server: string
  readonly transport: 'stdio' | 'http'
  /** The program that was started, or the origin that was asked. */
  readonly target: string
  readonly credentials: 'none' | 'configured' | 'sign-in'
  readonly environment: string
  /** It would see the account of the host. Default false. */
  readonly seesAccount?: boolean | undefined
  /** The whole address of an HTTP server that brings neither a bearer variable nor headers. */
  readonly bareUrl?: string | undefined
}

/** Addresses that look as if one could sign in, and take nothing but a token that a person makes. */
const TOKEN_ONLY: Readonly<Record<string, { readonly owner: string; readonly variable: string }>> = {
  'https://api.githubcopilot.com/mcp/': { owner: 'GitHub', variable: 'GITHUB_PERSONAL_ACCESS_TOKEN' },
}

/** A sentence, with what joins it to the message; empty when the message says all there is to do. */
export function nextStep(code: HostErrorCode, facts: NextStepFacts): string {
  const tokenOnly = facts.bareUrl === undefined ? undefined : TOKEN_ONLY[facts.bareUrl]
  const step = tokenOnly === undefined ? STEPS[code]?.(facts) : makeToken(facts.server, tokenOnly)
  return step === undefined ? '' : `. ${step}`
}

function makeToken(server: string, { owner, variable }: { readonly owner: string; readonly variable: string }): string {
  const entry = `${JSON.stringify(server)}: { "bearerTokenEnvVar": "${variable}" }`
  return `${owner} has no sign-in for this address: make a personal access token, put it into the variable ${variable} and name it in the entry: ${entry}`
}

const STEPS: Partial<Record<HostErrorCode, (facts: NextStepFacts) => string>> = {
  AUTH_REQUIRED: ({ credentials, environment, seesAccount, server }) => {
    if (seesAccount === true) return 'Sign in to the account of this program, or sign in to it again'
    if (credentials === 'configured') return 'The configured credentials were not accepted'
    return environment === 'local' ? `Run: convoke login ${pasted(server)}` : 'Sign in to it with your client'
  },
  AUTH_FAILED: ({ environment, server }) =>
    environment === 'local'
      ? `The stored sign-in is not accepted any more, or does not cover this. Sign in again: convoke login ${pasted(server)}`
      : 'The stored sign-in is not accepted any more, or does not cover this. Sign in again with your client',
  CREDENTIALS_UNAVAILABLE: () => 'The sign-in is still there; convoke auth status tells where it is kept',
  REFRESH_FAILED: () => 'The sign-in is kept, and the renewal is tried again when the server is next needed',
  COMMAND_NOT_FOUND: ({ target }) => `Is "${target}" installed and on the PATH?`,
  SPAWN_FAILED: ({ target }) => `May "${target}" be run, and is its cwd there?`,
  SERVER_EXITED: ({ target }) => `To see why, run "${target}" by hand with the arguments and variables of its entry`,
  SERVER_UNREACHABLE: ({ target }) => `Is ${target} running, and is the URL right?`,
  CONNECTION_LOST: () => 'It is connected again when it is next needed',
  STARTUP_TIMEOUT: () => 'A longer startupTimeoutMs gives it more time',
  INSTALL_TIMEOUT: () => 'Install it beforehand, or give it more time with a longer installTimeoutMs',
  LISTING_TIMEOUT: () => 'A longer startupTimeoutMs gives it more time',
  LISTING_FAILED: () => 'Its maker has to list less, or in fewer pages',
  PROTOCOL_ERROR: ({ transport }) =>
    `Is this an MCP server, and is its ${transport === 'stdio' ? 'command' : 'URL'} right?`,
  VERSION_UNSUPPORTED: () => 'Take a newer version of the server, or of Convoke',
  HTTP_STATUS: () => 'Is the URL right, and is this an MCP server?',
  MESSAGE_TOO_LARGE: () => 'A higher messageBytesMax lets it through',
  VARIABLE_MISSING: () => 'Set it for the program that runs Convoke',
  SERVER_ERROR: () => 'The server itself refuses; its maker or its documentation knows why',
  INTERNAL: () => 'This is a fault of Convoke: a report is welcome',
}

/** A name as a word of a shell: quoted unless it is plain, and never taken for an option. */
function pasted(name: string): string {
  if (/^[A-Za-z0-9_][\w-]*$/.test(name)) return name
  const quoted = `'${name.replaceAll("'", "'\\''")}'`
  return name.startsWith('-') ? `-- ${quoted}` : quoted
}
