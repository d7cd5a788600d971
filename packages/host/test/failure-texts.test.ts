// What a failed start says: its reason, its words, and what somebody can do about it. Tables, and a few servers that really fail.
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { HostError, type HostErrorCode } from '../src/base/index.ts'
import { defineServer } from '../src/config/index.ts'
import { classifyFailure, type FailureFacts, failureFacts } from '../src/connection/classify.ts'
import { hostOf, http, scripted, stateOf } from './support.ts'

const facts: FailureFacts = {
  server: 'github',
  transport: 'stdio',
  target: 'gh-mcp',
  credentials: 'none',
  signIn: 'none',
  environment: 'local',
  stderrTail: '',
  secrets: [],
}
const say = (error: HostError, more: Partial<FailureFacts> = {}): object =>
  classifyFailure(error, { ...facts, ...more })
const messageOf = (error: HostError, more: Partial<FailureFacts> = {}): string =>
  classifyFailure(error, { ...facts, ...more }).reason.message
const refused = (message = 'Server "github": HTTP 401'): HostError => new HostError('AUTH_REQUIRED', message)
const GITHUB = 'https://api.githubcopilot.com/mcp/'

verifies('conn.016', () => {
  const wire = Object.assign(new Error('HTTP 401'), { code: 'unauthorized' })
  const wrap = (cause: unknown, times: number): Error =>
    times === 0 ? (cause as Error) : new Error('while opening', { cause: wrap(cause, times - 1) })
  const layered = (cause: unknown): HostError => new HostError('INTERNAL', 'it failed', { cause })
  for (const times of [0, 1, 14])
    expect(say(layered(wrap(wire, times))), `${times} layers`).toMatchObject({
      as: 'needs-auth',
      reason: { code: 'AUTH_REQUIRED' },
    })
  expect(say(layered(wrap(refused(), 3)))).toMatchObject({ as: 'needs-auth' })
  // A proxy has only words for it.
  expect(say(new HostError('SERVER_ERROR', 'Server "github": Auth required'))).toMatchObject({ as: 'needs-auth' })
  // Nothing of the kind, an endless chain, and words of ours that only look like it.
  const endless = new Error('round')
  endless.cause = endless
  for (const error of [
    layered(wrap(new Error('reset'), 2)),
    layered(endless),
    new HostError('SPAWN_FAILED', 'Auth required by the system'),
    new HostError('SERVER_ERROR', 'Server "github": authority required'),
  ])
    expect(say(error), error.message).toMatchObject({ as: 'failed' })
})

verifies('conn.017', async () => {
  const hint =
    'GitHub has no sign-in for this address: make a personal access token, put it into the variable GITHUB_PERSONAL_ACCESS_TOKEN and name it in the entry: "my hub": { "bearerTokenEnvVar": "GITHUB_PERSONAL_ACCESS_TOKEN" }'
  const github = (transport: object = {}): Pick<FailureFacts, 'server' | 'bareUrl'> =>
    failureFacts(
      defineServer({
        name: 'my hub',
        transport: { kind: 'http', url: GITHUB, headers: {}, envHeaders: {}, ...transport },
      }),
      'none',
    )
  for (const code of ['AUTH_REQUIRED', 'AUTH_FAILED', 'SERVER_UNREACHABLE', 'HTTP_STATUS', 'STARTUP_TIMEOUT'] as const)
    expect(messageOf(new HostError(code, 'It failed'), github()), code).toBe(`It failed. ${hint}`)
  // With credentials of its own, or at any other address, it is a server like others.
  for (const transport of [
    { bearerTokenEnvVar: 'T' },
    { headers: { authorization: 'x' } },
    { envHeaders: { 'x-key': 'K' } },
    { url: 'https://api.githubcopilot.com/mcp' },
  ])
    expect(messageOf(refused(), github(transport)), JSON.stringify(transport)).not.toContain('personal access token')
})

verifies('conn.018', () => {
  expect(say(refused())).toEqual({
    as: 'needs-auth',
    reason: { code: 'AUTH_REQUIRED', message: 'Server "github": HTTP 401. Run: convoke login github' },
  })
  expect(messageOf(refused(), { environment: 'box' })).toBe('Server "github": HTTP 401. Sign in to it with your client')
  // Credentials that are configured are not to be replaced by a sign-in.
  expect(say(refused(), { credentials: 'configured' })).toEqual({
    as: 'needs-auth',
    reason: {
      code: 'AUTH_REQUIRED',
      message: 'Server "github": HTTP 401. The configured credentials were not accepted',
    },
  })
  // Nobody signs in to a server that sees the account.
  expect(messageOf(refused(), { seesAccount: true })).toMatch(/ Sign in to the account of this program,/)
  const transport = { kind: 'http', url: 'https://a.test/', headers: {}, envHeaders: {} } as const
  expect(failureFacts(defineServer({ name: 's', transport, auth: 'account' }), 'none').seesAccount).toBe(true)
})

verifies('conn.019', () => {
  const lapsed = 'The stored sign-in is not accepted any more, or does not cover this. Sign in again'
  expect(say(refused(), { credentials: 'sign-in', signIn: 'stored' })).toEqual({
    as: 'needs-auth',
    reason: { code: 'AUTH_FAILED', message: `Server "github": HTTP 401. ${lapsed}: convoke login github` },
  })
  expect(messageOf(refused(), { signIn: 'stored', environment: 'box' })).toBe(
    `Server "github": HTTP 401. ${lapsed} with your client`,
  )
})

verifies('conn.020', () => {
  const other = new HostError('SERVER_UNREACHABLE', 'no')
  const rows: readonly [HostError, FailureFacts['signIn'], HostErrorCode][] = [
    [refused(), 'stored', 'AUTH_FAILED'],
    [refused(), 'none', 'AUTH_REQUIRED'],
    [other, 'stored', 'SERVER_UNREACHABLE'],
    [other, 'none', 'SERVER_UNREACHABLE'],
  ]
  for (const [error, signIn, code] of rows)
    expect(say(error, { signIn }), `${error.code} ${signIn}`).toMatchObject({ reason: { code } })
  // What counts as stored: what the store says; without a store, a sign-in that went along; never beside configured credentials.
  const definition = defineServer({
    name: 's',
    transport: { kind: 'http', url: 'https://a.test/', headers: {}, envHeaders: {} },
  })
  expect(failureFacts(definition, 'none').signIn).toBe('none')
  expect(failureFacts(definition, 'sign-in').signIn).toBe('stored')
  expect(failureFacts(definition, 'sign-in', () => 'none').signIn).toBe('none')
  expect(failureFacts(definition, 'none', () => 'stored').signIn).toBe('stored')
  expect(failureFacts(definition, 'configured', () => 'stored').signIn).toBe('none')
})

verifies('conn.021', () => {
  const rows: readonly [HostErrorCode, string, Partial<FailureFacts>][] = [
    ['COMMAND_NOT_FOUND', 'Is "gh-mcp" installed and on the PATH?', {}],
    ['SPAWN_FAILED', 'May "gh-mcp" be run, and is its cwd there?', {}],
    ['SERVER_EXITED', 'To see why, run "gh-mcp" by hand with the arguments and variables of its entry', {}],
    ['SERVER_UNREACHABLE', 'Is https://a.test running, and is the URL right?', { target: 'https://a.test' }],
    ['CONNECTION_LOST', 'It is connected again when it is next needed', {}],
    ['INSTALL_TIMEOUT', 'Install it beforehand, or give it more time with a longer installTimeoutMs', {}],
    ['LISTING_TIMEOUT', 'A longer startupTimeoutMs gives it more time', {}],
    ['LISTING_FAILED', 'Its maker has to list less, or in fewer pages', {}],
    ['PROTOCOL_ERROR', 'Is this an MCP server, and is its command right?', {}],
    ['PROTOCOL_ERROR', 'Is this an MCP server, and is its URL right?', { transport: 'http' }],
    ['VERSION_UNSUPPORTED', 'Take a newer version of the server, or of Convoke', {}],
    ['HTTP_STATUS', 'Is the URL right, and is this an MCP server?', {}],
    ['MESSAGE_TOO_LARGE', 'A higher messageBytesMax lets it through', {}],
    ['VARIABLE_MISSING', 'Set it for the program that runs Convoke', {}],
    ['SERVER_ERROR', 'The server itself refuses; its maker or its documentation knows why', {}],
    ['INTERNAL', 'This is a fault of Convoke: a report is welcome', {}],
  ]
  for (const [code, step, more] of rows)
    expect(say(new HostError(code, 'Server "github": it failed'), more), code).toEqual({
      as: code === 'VARIABLE_MISSING' ? 'needs-input' : 'failed',
      reason: {
        code,
        message: `Server "github": it failed. ${step}`,
      },
    })
  // What says all there is to do gets nothing more.
  expect(messageOf(new HostError('REQUEST_REFUSED', 'Server "github": the header x'))).toBe(
    'Server "github": the header x',
  )
})

test('a process that ended is told apart from a lost connection, with its last useful words', () => {
  const stderrTail = 'starting\nTypeError: no token\n    at main (x.js:1)\n\nNode.js v24.0.0\n'
  const ended = (details: object): HostError => new HostError('CONNECTION_LOST', 'x', { details: { ...details } })
  expect(say(ended({ exitCode: 3 }), { stderrTail })).toEqual({
    as: 'failed',
    reason: {
      code: 'SERVER_EXITED',
      message:
        'Server "github" ended with code 3 (last stderr line: TypeError: no token). To see why, run "gh-mcp" by hand with the arguments and variables of its entry',
    },
  })
  expect(messageOf(ended({ signal: 'SIGKILL' }))).toContain('Server "github" ended by SIGKILL')
  expect(say(new HostError('CONNECTION_LOST', 'Server "github": reset'))).toMatchObject({
    reason: { code: 'CONNECTION_LOST' },
  })
  // Where the reason is known without the process, its words are noise; and no secret is quoted.
  expect(messageOf(new HostError('COMMAND_NOT_FOUND', 'no'), { stderrTail })).not.toContain('stderr')
  expect(messageOf(new HostError('VARIABLE_MISSING', 'no'), { stderrTail })).not.toContain('stderr')
  expect(
    messageOf(new HostError('STARTUP_TIMEOUT', 'late'), {
      stderrTail: 'using hunter2hunter2',
      secrets: ['hunter2hunter2'],
    }),
  ).toBe('late (last stderr line: using [redacted]). A longer startupTimeoutMs gives it more time')
})

verifies(['conn.022'], async () => {
  await using silent = await startScriptedHttp({ listing: 'silent' })
  const { host } = await hostOf([
    scripted('slow', { initialize: 'silent' }, { startupTimeoutMs: 400 }),
    http('web', silent.url, { startupTimeoutMs: 400 }),
  ])
  await using _ = host
  for (const name of ['slow', 'web']) {
    const { reason } = await stateOf(host, name, 'failed')
    expect(reason?.code).toBe('STARTUP_TIMEOUT')
    expect(reason?.message).toContain(`Server "${name}" did not start within 400 ms`)
    expect(reason?.message).toMatch(/\. A longer startupTimeoutMs gives it more time$/)
  }
})

verifies('conn.023', () => {
  const rows: readonly [string, string][] = [
    ['plain-name_1', 'plain-name_1'],
    ['npm:@scope/package.name', "'npm:@scope/package.name'"],
    ['two words', "'two words'"],
    ["it's $HOME `x`", "'it'\\''s $HOME `x`'"],
    ['-rf', "-- '-rf'"],
  ]
  for (const [server, pasted] of rows) {
    expect(messageOf(refused('x'), { server })).toBe(`x. Run: convoke login ${pasted}`)
    expect(messageOf(refused('x'), { server, signIn: 'stored' })).toMatch(`convoke login ${pasted}`)
    expect(messageOf(refused('x'), { server, bareUrl: GITHUB })).toContain(`${JSON.stringify(server)}: {`)
  }
})
