// What an HTTP server gets to see of us, and what happens when it does not like it.
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Authorization, type Credentials, nodePlatform, type Platform } from '@convoke/host'
import { startScriptedHttp, verifies } from '@convoke/testkit'
import { expect, test } from 'vitest'
import { redactJson } from '../src/base/index.ts'
import { parseHelperOutput } from '../src/protocol/headers-helper.ts'
import { startRawHttp } from './raw-http.ts'
import { callTool, hostOf, http, scripted, statusOf, textIn } from './support.ts'

const withEnv = (env: Record<string, string>): { platform: Platform } => ({
  platform: { ...nodePlatform, env: { ...nodePlatform.env, ...env } },
})

verifies('connection.050', async () => {
  await using server = await startScriptedHttp({ token: 'right' })
  const { host } = await hostOf([
    http('locked', server.url),
    http('wrong key', server.url, {}, { headers: { Authorization: 'Bearer wrong' } }),
  ])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'locked')).toMatchObject({
    state: 'needs-auth',
    reason: { code: 'AUTH_REQUIRED', message: expect.stringMatching(/^Server "locked".*Run: convoke login locked$/) },
  })
  expect(statusOf(host, 'wrong key').reason?.message).toMatch(/The configured credentials were not accepted$/)
  const asked = server.requests.length
  await using _binding = await host.bind()
  await host.whenSettled({ servers: ['locked', 'wrong key'] })
  expect(server.requests).toHaveLength(asked)
  expect(statusOf(host, 'locked').nextRetryAtMs).toBeUndefined()
})

test('credentials that are refused in the middle of a life make the server need them', async () => {
  let isOpen = true
  const locked = { status: 401, headers: { 'www-authenticate': 'Bearer' } }
  await using server = await startRawHttp({
    'tools/list': () => ({ result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } }),
    'tools/call': () => (isOpen ? { result: { content: [] } } : locked),
  })
  const { host } = await hostOf([http('s', server.url)])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect((await callTool(binding, 's/t')).kind).toBe('ok')
  isOpen = false
  expect(await callTool(binding, 's/t')).toMatchObject({ kind: 'failed', error: { code: 'AUTH_REQUIRED' } })
  expect(statusOf(host, 's').state).toBe('needs-auth')
})

verifies('connection.051', async () => {
  await using server = await startScriptedHttp({ token: 'from-variable' })
  const { host } = await hostOf(
    [
      http(
        'bearer',
        server.url,
        {},
        {
          bearerTokenEnvVar: 'CONVOKE_TEST_TOKEN',
          headers: { 'X-Literal': 'one' },
          envHeaders: { 'X-From': 'CONVOKE_TEST_HEADER', 'x-absent': 'CONVOKE_TEST_ABSENT' },
        },
      ),
      http('missing', server.url, {}, { bearerTokenEnvVar: 'CONVOKE_TEST_ABSENT' }),
      http('blank', server.url, {}, { bearerTokenEnvVar: 'CONVOKE_TEST_BLANK' }),
    ],
    withEnv({ CONVOKE_TEST_TOKEN: 'from-variable', CONVOKE_TEST_HEADER: 'two', CONVOKE_TEST_BLANK: '  ' }),
  )
  await using _ = host
  await host.whenSettled()
  expect(host.statuses.map(({ name, state, reason }) => [name, state, reason?.code])).toEqual([
    ['bearer', 'ready', undefined],
    ['missing', 'needs-input', 'VARIABLE_MISSING'],
    ['blank', 'needs-input', 'VARIABLE_MISSING'],
  ])
  expect(statusOf(host, 'missing').reason?.message).toBe(
    'Server "missing" needs the environment variable CONVOKE_TEST_ABSENT (bearerTokenEnvVar), and it is not set. Set it for the program that runs Convoke',
  )
  for (const { headers } of server.requests) {
    expect(headers).toMatchObject({ authorization: 'Bearer from-variable', 'x-literal': 'one', 'x-from': 'two' })
    expect(headers).not.toHaveProperty('x-absent')
  }
})

test('a certificate file that cannot be read names itself', async () => {
  const { host } = await hostOf([http('s', 'https://127.0.0.1:9/mcp', {}, { ca: '/no/such/file.pem' })])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 's').reason).toMatchObject({
    code: 'CA_UNREADABLE',
    message: expect.stringContaining('/no/such/file.pem'),
  })
})

verifies('connection.052', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
  try {
    // Counts its runs; the first token is already too old.
    const path = join(folder, 'helper.sh')
    await writeFile(
      path,
      `#!/bin/sh\necho run >> "${folder}/runs"\nn=$(wc -l < "${folder}/runs" | tr -d ' ')\nprintf '{"Authorization":"Bearer token-%s"}' "$n"\n`,
    )
    await chmod(path, 0o755)
    const lying = join(folder, 'lying.sh')
    await writeFile(lying, `#!/bin/sh\nprintf '{"Host":"evil.example","x-key":"hunter2hunter2"}'\n`)
    await chmod(lying, 0o755)
    await using server = await startScriptedHttp({ token: 'token-2' })
    const { host, events } = await hostOf([
      http('helped', server.url, {}, { headersHelper: { command: path, args: [] } }),
      http('lying', server.url, {}, { headersHelper: { command: lying, args: [] } }),
      http('absent', server.url, {}, { headersHelper: { command: join(folder, 'no-such'), args: [] } }),
    ])
    await using _ = host
    await host.whenSettled()
    expect(statusOf(host, 'helped').state).toBe('ready')
    expect(new Set(server.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer token-1', 'Bearer token-2']),
    )
    expect(statusOf(host, 'lying')).toMatchObject({
      state: 'failed',
      reason: {
        code: 'HEADERS_HELPER_FAILED',
        message: 'Server "lying": the headersHelper gave no headers: it sets the reserved header "host"',
      },
    })
    expect(statusOf(host, 'absent').reason?.code).toBe('HEADERS_HELPER_FAILED')
    expect(JSON.stringify([host.statuses, events])).not.toContain('hunter2')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.each([
  ['{"X-A":"1","x-b":"2"}', { 'x-a': '1', 'x-b': '2' }],
  ['  {}\n', {}],
  ['nonsense', 'its output is not JSON'],
  ['["x"]', 'its output is not a JSON object'],
  ['{"x":1}', 'the value of "x" is no header value'],
  ['{"x":"a\\nb"}', 'the value of "x" is no header value'],
  ['{"a b":"x"}', 'a name in its output is no header name'],
  ['{"X":"1","x":"2"}', 'it sets "x" twice'],
  ['{"Content-Length":"1"}', 'it sets the reserved header "content-length"'],
])('what a headers helper prints: %s', (printed, means) => {
  expect(parseHelperOutput(printed)).toEqual(means)
})

verifies('connection.053', async () => {
  const isSignedIn = ({ authorization }: IncomingHttpHeaders): boolean => authorization === 'Bearer signed-in'
  const locked = { status: 401, headers: { 'www-authenticate': 'Bearer scope="read"' } }
  await using server = await startRawHttp({
    initialize: (_message, headers) =>
      isSignedIn(headers)
        ? { result: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: {} } }
        : locked,
    'server/discover': (_message, headers) =>
      isSignedIn(headers) ? { error: { code: -32601, message: 'x' } } : locked,
    'tools/list': () => ({ result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } }),
    'tools/call': () => ({ result: { content: [{ type: 'text', text: 'in' }] } }),
  })
  let header: string | undefined
  const refusals: unknown[] = []
  const authorization: Authorization = {
    header: () => header,
    async challenge(refusal) {
      refusals.push(refusal)
      header = 'Bearer signed-in'
      return true
    },
  }
  const { host } = await hostOf([http('s', server.url), scripted('never-asked')], {
    authorization: ({ transport }) => (transport.kind === 'http' ? authorization : undefined),
  })
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 's').state).toBe('ready')
  await using binding = await host.bind()
  expect(textIn(await callTool(binding, 's/t'))).toBe('in')
  expect(refusals).toMatchObject([
    { status: 401, wwwAuthenticate: 'Bearer scope="read"', refused: undefined, round: 0 },
  ])
})

verifies('security.135', async () => {
  const secret = 'hunter2-hunter2-hunter2'
  const literal = 'literal-api-key-value'
  const { host, events } = await hostOf(
    [
      {
        ...scripted('dies'),
        transport: {
          kind: 'stdio',
          command: '/bin/sh',
          args: ['-c', 'text="using $MY_TOKEN and $API_KEY"; echo "$text"; echo "$text" >&2; exit 3'],
          env: { API_KEY: literal },
          envVars: ['MY_TOKEN'],
        },
      },
    ],
    withEnv({ MY_TOKEN: secret }),
  )
  await using _ = host
  await host.whenSettled()
  const all = JSON.stringify([host.statuses, events])
  expect(statusOf(host, 'dies')).toMatchObject({
    state: 'failed',
    reason: {
      message: expect.stringMatching(
        /^Server "dies" ended with code 3 \(last stderr line: using \[redacted\] and \[redacted\]\)\. To see why, run /,
      ),
    },
    stderrTail: 'using [redacted] and [redacted]',
  })
  expect(all).toContain('server.noise')
  expect(all).not.toContain(secret)
  expect(all).not.toContain(literal)
})

test('secrets are kept out of what a server answers and logs', async () => {
  const secret = 'hunter2-hunter2-hunter2'
  await using server = await startRawHttp({
    'tools/list': () => ({ result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } }),
    'tools/call': (_message, { authorization }) => ({
      error: { code: -1, message: `no access with ${authorization}` },
    }),
  })
  await using talker = await startRawHttp({
    'tools/list': (_message, headers) => ({
      before: [
        {
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: {
            level: 'debug',
            data: { headers: headers['x-api-key'], quoted: JSON.stringify(headers['x-api-key']) },
          },
        },
      ],
      result: { tools: [] },
    }),
  })
  const { host, events } = await hostOf([
    http('s', server.url, {}, { headers: { Authorization: `Bearer ${secret}` } }),
    http('talker', talker.url, {}, { headers: { 'X-API-Key': secret } }),
  ])
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  const refused = await callTool(binding, 's/t')
  expect(refused).toMatchObject({ error: { message: 'Server "s": no access with [redacted]' } })
  expect(events.filter(({ kind }) => kind === 'server.log')).toMatchObject([{ data: { headers: '[redacted]' } }])
  expect(JSON.stringify([host.statuses, events, 'error' in refused && refused.error.details])).not.toContain('hunter2')
})

verifies('http.037', async () => {
  const sent = new Set<string>()
  await using server = await startRawHttp({
    'tools/list': (_message, { authorization }) => {
      sent.add(String(authorization))
      return { result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } }
    },
    'tools/call': (_message, { authorization }) => {
      sent.add(String(authorization))
      return { error: { code: -1, message: `no access with ${[...sent].join(' or ')}` } }
    },
  })
  let token = 0
  const { host, events } = await hostOf([http('s', server.url)], {
    authorization: () => ({
      header: () => (token % 2 === 0 ? `Bearer CANARY-${token}` : Promise.resolve(`Bearer CANARY-${token}`)),
      challenge: async () => false,
    }),
  })
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  for (token = 1; token <= 2; token++) {
    const refused = await callTool(binding, 's/t')
    expect(refused).toMatchObject({ error: { message: expect.stringContaining('[redacted] or [redacted]') } })
    expect(JSON.stringify([host.statuses, events, 'error' in refused && refused.error.details])).not.toContain('CANARY')
  }
  expect([...sent]).toEqual([0, 1, 2].map((number) => `Bearer CANARY-${number}`))
})

test('secrets are known by where they stand, and in the forms in which they come back', async () => {
  const token = 'canary/literal+token'
  const fromVariable = 'canary-of-a-variable'
  const inQuery = 'canary-in-the-query'
  await using server = await startRawHttp({
    'tools/list': () => ({ result: { tools: [{ name: 't', inputSchema: { type: 'object' } }] } }),
    'tools/call': (_message, headers) => ({
      error: {
        code: -1,
        message: [
          token,
          Buffer.from(token).toString('base64'),
          encodeURIComponent(token),
          headers['x-from'],
          inQuery,
        ].join(),
      },
    }),
  })
  const transport = { headers: { Authorization: `Bearer ${token}` }, envHeaders: { 'X-From': 'SOME_VARIABLE' } }
  const { host } = await hostOf(
    [http('s', `${server.url}?api_key=${inQuery}`, {}, transport)],
    withEnv({ SOME_VARIABLE: fromVariable }),
  )
  await using _ = host
  await host.whenSettled()
  await using binding = await host.bind()
  expect(await callTool(binding, 's/t')).toMatchObject({
    error: { message: 'Server "s": [redacted],[redacted],[redacted],[redacted],[redacted]' },
  })
})

test('secrets in arguments and in addresses stay out of what a process says at its end', async () => {
  const script = 'echo "$1 $2 $3 $4 $DATABASE_URL $PIN" >&2; exit 3'
  const args = ['-c', script, 'sh', '--token', 'canary-argument', '--api-key=canary-joined', '--keyring=file-kept']
  const { host } = await hostOf([
    {
      ...scripted('dies'),
      transport: {
        kind: 'stdio',
        command: '/bin/sh',
        args,
        env: { DATABASE_URL: 'postgres://me:canary-password@db/x' },
        envVars: [],
      },
    },
  ])
  await using _ = host
  await host.whenSettled()
  expect(statusOf(host, 'dies').stderrTail?.trim()).toBe(
    '--token [redacted] --api-key=[redacted] --keyring=file-kept postgres://me:[redacted]@db/x',
  )
})

test('a secret of digits where a number stands does not break what is shown', () => {
  expect(redactJson({ at: 123456, text: 'pin 123456' }, ['123456'])).toEqual({ at: 123456, text: 'pin [redacted]' })
})

test.each([
  ['nothing', () => undefined],
  ['a number', async () => 5],
  ['an unknown kind', async () => ({ snapshot: { kind: 'maybe' }, isContended: false })],
  ['a key that is no text', async () => ({ snapshot: { kind: 'value', key: 5 }, isContended: false })],
  [
    'a record that throws',
    async () => ({
      get snapshot() {
        throw new Error('no')
      },
    }),
  ],
])('a reader of sign-ins that gives %s counts as unreadable and stops no other server', async (_what, read) => {
  await using server = await startScriptedHttp({})
  const credentials = { read } as unknown as Credentials
  const { host } = await hostOf([http('s', server.url), scripted('other')], { credentials })
  await using _ = host
  await host.whenSettled()
  expect(host.statuses.map(({ state }) => state)).toEqual(['ready', 'ready'])
  await host.refresh()
  expect(host.statuses.map(({ state }) => state)).toEqual(['ready', 'ready'])
})

test('callbacks of the program that throw fail their own server and leave no connection behind', async () => {
  await using server = await startScriptedHttp({})
  let isBroken = false
  const broken = (): undefined => {
    if (isBroken) throw new Error('no')
  }
  const { host } = await hostOf([scripted('kept'), http('live', server.url)], {
    credentials: { read: async () => ({ snapshot: { kind: 'none' }, isContended: false }), live: broken },
    authorization: broken,
  })
  await using _ = host
  await host.whenSettled()
  const { pid } = statusOf(host, 'kept')
  isBroken = true
  await host.configure([scripted('kept'), http('live', server.url), http('new', server.url)])
  await host.whenSettled()
  expect(host.statuses.map(({ state }) => state).slice(0, 2)).toEqual(['ready', 'ready'])
  expect(statusOf(host, 'new').state).toBe('needs-auth')
  expect(statusOf(host, 'kept').pid).toBe(pid)
})
