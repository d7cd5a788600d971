// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested here
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConfigProblem, defineServer, type LoadedConfig, loadConfig, type ServerDefinition } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-config-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const homeDirectory = '/home/ada'
let count = 0

/** Loads one text as the user's file. */
async function load(
  text: string,
  env: Record<string, string> = {},
  layer: 'user' | 'flag' = 'user',
): Promise<LoadedConfig & { file: string }> {
  count += 1
  const file = join(folder, `${count}.json`)
  await writeFile(file, text)
  return { ...(await loadConfig({ files: [{ path: file, layer }], env, homeDirectory })), file }
}

/** Loads one entry, written as JSON. */
async function loadEntry(
  entry: unknown,
  env: Record<string, string> = {},
  layer: 'user' | 'flag' = 'user',
): Promise<{ definition: ServerDefinition; problems: readonly ConfigProblem[] }> {
  const { definitions, problems } = await load(JSON.stringify({ mcpServers: { one: entry } }), env, layer)
  const [definition] = definitions
  if (definition === undefined) throw new Error('no definition')
  return { definition, problems }
}

const brief = (problems: readonly ConfigProblem[]): string[] =>
  problems.map(({ severity, code, field }) => `${severity} ${code} ${field ?? '-'}`)
const usable = (config: LoadedConfig): string[] =>
  config.definitions.filter((definition) => definition.problem === undefined).map((definition) => definition.name)

verifies('config.001', async () => {
  const config = await load(`\uFEFF{
    // one comment
    "$schema": "./x.json", /* another
    one */
    "mcpServers": {
      "files": { "command": "files", "args": ["https://example.com//x",], }, // "args": [
    },
  }`)
  expect(config.problems).toEqual([])
  expect(config.definitions.map(({ name, transport }) => [name, transport.kind === 'stdio' && transport.args])).toEqual(
    [['files', ['https://example.com//x']]],
  )
})

verifies('config.002', async () => {
  const config = await load(`{
  "mcpServers": {
    "first": { "command": "a" },
    "types": { "command": "a", "args": "b", "enabled": "yes" },
    "time": { "command": "a", "toolTimeoutMs": "30s" },
    "typo": { "comand": "a" },
    "last": { "url": "https://example.com/mcp" }
  }
}`)
  expect(usable(config)).toEqual(['first', 'last'])
  expect(config.problems.map(({ line, column, server, field, code }) => [line, column, server, field, code])).toEqual([
    [4, 40, 'types', 'args', 'CONFIG_FIELD_TYPE'],
    [4, 56, 'types', 'enabled', 'CONFIG_FIELD_TYPE'],
    [5, 48, 'time', 'toolTimeoutMs', 'CONFIG_FIELD_TYPE'],
    [6, 5, 'typo', undefined, 'CONFIG_TRANSPORT_MISSING'],
    [6, 15, 'typo', 'comand', 'CONFIG_KEY_UNKNOWN'],
  ])
  expect(config.problems[0]?.message).toBe(
    `${config.file}:4:40: server "types": "args" must be a list of texts, not a text.`,
  )
  const types = config.definitions.find((definition) => definition.name === 'types')
  expect(types?.problem).toEqual(config.problems[0])
})

verifies('config.003', async () => {
  const cases: [string, string[], string[]][] = [
    ['{"mcpServers":{"a":{"command":"x"} "b":{"command":"y"}}}', ['a', 'b'], ['-']],
    ['{"mcpServers":{"a":{"command":"x" "args":[]},"b":{"command":"y"}}}', ['b'], ['a']],
    ['{"mcpServers":{"a":{command:"x"},"b":{"command":"y"}}}', ['b'], ['a']],
    ['{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"', ['a'], ['b']],
    ['{"mcpServers":{"a":{"command":"x"},"b":{"command":"y}}}', ['a'], ['b']],
    ['{"mcpServers":{"a":{"command":"x"},"b":{"command":"y"}}}}', ['a', 'b'], ['-']],
    ['{"mcpServers":{"a":{"command":"x"},"b":{"command":"\\q"}}}', ['a'], ['b']],
    ['{"mcpServers":{"a":{"command":"x"},"tools":{"deny":["d"]}},"b":{"command":"y"}}}', [], ['a', '-']],
  ]
  for (const [text, servers, places] of cases) {
    const config = await load(text)
    expect([text, usable(config)]).toEqual([text, servers])
    const syntax = config.problems.filter((problem) => problem.code === 'CONFIG_SYNTAX')
    expect([text, [...new Set(syntax.map(({ server }) => server ?? '-'))].sort()]).toEqual([
      text,
      [...new Set(places)].sort(),
    ])
    expect(syntax.every(({ line, column, severity }) => line === 1 && column > 1 && severity === 'error')).toBe(true)
  }
})

verifies('config.004', async () => {
  const { definition, problems } = await loadEntry({ command: 'a', arguments: ['x'], enviroment: 'x', zzzz: 1 })
  expect(definition.problem).toBeUndefined()
  expect(brief(problems)).toEqual([
    'warning CONFIG_KEY_UNKNOWN arguments',
    'warning CONFIG_KEY_UNKNOWN enviroment',
    'warning CONFIG_KEY_UNKNOWN zzzz',
  ])
  expect(problems[1]?.message).toMatch(/is not a known key and is ignored\. Did you mean "environment"\?$/)
  expect(problems[2]?.message).toMatch(/ignored\.$/)
  const roots = await load('{"servers":{},"mcpservers":{}}')
  expect(roots.problems[0]?.message).toMatch(/Convoke reads "mcpServers"/)
  expect(roots.problems[1]?.message).toMatch(/Did you mean "mcpServers"\?/)
})

verifies('config.005', async () => {
  const stdio = {
    command: 'server',
    args: ['--flag', ''],
    env: { KEY: 'value' },
    envVars: ['ONE', { name: 'TWO' }, { name: 'THREE', source: 'local' }],
    cwd: '/srv',
    enabled: false,
    required: true,
    startup: 'lazy-when-cached',
    startupTimeoutMs: 1,
    installTimeoutMs: 2,
    toolTimeoutMs: 3,
    toolTotalTimeoutMs: 4,
    messageBytesMax: 1024,
    tools: {
      allow: ['a'],
      deny: ['b'],
      overrides: {
        a: { approvalMode: 'prompt', idempotent: true, outputTokensMax: 9, toolTimeoutMs: 5, toolTotalTimeoutMs: 6 },
      },
    },
    approvalMode: 'writes',
    parallelToolCalls: true,
    omitToolsFrom: ['model', 'gateway', 'command'],
    environment: 'local',
    scopes: ['read'],
    isolation: 'session',
    trustAnnotations: true,
    hosted: true,
  }
  const { definition, problems } = await loadEntry(stdio)
  expect(problems).toEqual([])
  const { command, args, env, cwd, envVars: _, ...settings } = stdio
  const { source, ...rest } = definition
  expect(rest).toEqual({
    name: 'one',
    ...settings,
    auth: 'none',
    transport: { kind: 'stdio', command, args, env, cwd, envVars: ['ONE', 'TWO', 'THREE'] },
  })
  expect(source).toMatchObject({ layer: 'user', line: 1, column: 16 })

  const http = {
    url: 'https://example.com/mcp',
    transport: 'sse',
    headers: { 'X-A': 'b' },
    envHeaders: { 'X-B': 'B_VAR' },
    bearerTokenEnvVar: 'TOKEN',
    headersHelper: { command: 'helper', args: ['x'] },
    ca: '/etc/ca.pem',
    auth: 'account',
    oauth: {
      clientId: 'id',
      clientSecretEnvVar: 'SECRET',
      callbackUrl: 'http://127.0.0.1:7/cb',
      callbackPort: 7,
      issuer: 'https://issuer.example',
      resource: 'https://example.com/mcp',
    },
  }
  const read = await loadEntry(http)
  expect(read.problems).toEqual([])
  const { auth, oauth, ...transport } = http
  expect(read.definition).toMatchObject({ auth, oauth, transport: { kind: 'http', ...transport } })

  const least = await loadEntry({ url: 'https://example.com/mcp' })
  expect({ ...least.definition, source: { layer: 'host' } }).toEqual({
    name: 'one',
    source: { layer: 'host' },
    transport: { kind: 'http', url: 'https://example.com/mcp', headers: {}, envHeaders: {} },
    enabled: true,
    required: false,
    startup: 'lazy-when-cached',
    startupTimeoutMs: 30_000,
    installTimeoutMs: 300_000,
    toolTimeoutMs: 300_000,
    toolTotalTimeoutMs: 3_600_000,
    messageBytesMax: 67_108_864,
    tools: {},
    approvalMode: 'auto',
    parallelToolCalls: false,
    omitToolsFrom: [],
    environment: 'local',
    auth: 'oauth',
    isolation: 'shared',
    trustAnnotations: false,
    hosted: false,
  })
})

verifies('config.006', async () => {
  const config = await load(`{"mcpServers":{
    "twice": { "command": "a" }, "twice": { "command": "b" },
    "field": { "command": "a", "command": "b" },
    "case": { "command": "a", "Command": "b" },
    "header": { "url": "https://example.com", "headers": { "X-A": "1", "x-a": "2" } },
    "env": { "command": "a", "env": { "A": "1", "a": "2" } }
  }}`)
  expect(usable(config)).toEqual(['env'])
  expect(config.problems.map(({ line, server, field, code }) => [line, server, field, code])).toEqual([
    [2, 'twice', undefined, 'CONFIG_KEY_DUPLICATE'],
    [3, 'field', 'command', 'CONFIG_KEY_DUPLICATE'],
    [4, 'case', 'Command', 'CONFIG_KEY_DUPLICATE'],
    [5, 'header', 'headers.x-a', 'CONFIG_KEY_DUPLICATE'],
  ])
  expect(config.problems[0]?.message).toMatch(/stands twice, first at 2:5\. Keep one of them\.$/)
})

verifies('config.007', async () => {
  const rows: [unknown, string[]][] = [
    [{ command: 'a', headers: {} }, ['error CONFIG_FIELD_MISPLACED headers']],
    [{ command: 'a', auth: 'oauth' }, ['error CONFIG_FIELD_MISPLACED auth']],
    [{ command: 'a', oauth: {} }, ['error CONFIG_FIELD_MISPLACED oauth']],
    [{ url: 'https://example.com', args: [] }, ['error CONFIG_FIELD_MISPLACED args']],
    [{ url: 'https://example.com', cwd: '/' }, ['error CONFIG_FIELD_MISPLACED cwd']],
    [{ command: 'a', url: 'https://example.com' }, ['error CONFIG_TRANSPORT_AMBIGUOUS url']],
    [{}, ['error CONFIG_TRANSPORT_MISSING -']],
    [{ command: 'a', scopes: ['x'] }, []],
    [{ enabled: false }, []],
  ]
  for (const [entry, expected] of rows) {
    const { problems, definition } = await loadEntry(entry)
    expect([entry, brief(problems)]).toEqual([entry, expected])
    expect(definition.problem).toEqual(problems[0])
  }
})

verifies(['config.008', 'config.024'], async () => {
  const env = { NAME: 'value', EMPTY: '', PATHS: 'a/b' }
  const stdio = await loadEntry(
    {
      command: '~/bin/server',
      args: [
        '${NAME}',
        'x-${env:NAME}-${NAME}',
        '${GONE:-de fault}',
        '${EMPTY:-full}',
        '[${EMPTY}]',
        '~',
        '~/x',
        '~x/${NAME}',
        'a~/b',
        '$${NAME} $NAME',
      ],
      env: { A: '~/${NAME}', B: '${NAME}' },
      cwd: 'sub/${NAME}',
    },
    env,
  )
  expect(stdio.problems).toEqual([])
  expect(stdio.definition.transport).toEqual({
    kind: 'stdio',
    command: '/home/ada/bin/server',
    args: [
      'value',
      'x-value-value',
      'de fault',
      'full',
      '[]',
      '/home/ada',
      '/home/ada/x',
      '~x/value',
      'a~/b',
      '${NAME} $NAME',
    ],
    env: { A: '/home/ada/value', B: 'value' },
    envVars: [],
    cwd: join(folder, 'sub/value'),
  })
  const http = await loadEntry(
    {
      url: 'https://example.com/${NAME}/${PATHS}?q=${NAME}',
      headers: { Authorization: 'Bearer ${NAME}', 'X-Tilde': '~/x' },
      ca: './${NAME}.pem',
      headersHelper: { command: '~/helper', args: ['~/${NAME}'] },
    },
    env,
  )
  expect(http.problems).toEqual([])
  expect(http.definition.transport).toEqual({
    kind: 'http',
    url: 'https://example.com/value/a/b?q=value',
    headers: { Authorization: 'Bearer value', 'X-Tilde': '~/x' },
    envHeaders: {},
    headersHelper: { command: '/home/ada/helper', args: ['/home/ada/value'] },
    ca: join(folder, 'value.pem'),
  })
})

verifies('config.009', async () => {
  const rows: [unknown, string][] = [
    [{ command: '${NAME}' }, 'command'],
    [{ command: 'a', envVars: ['${NAME}'] }, 'envVars.0'],
    [{ command: 'a', tools: { allow: ['${NAME}'] } }, 'tools.allow.0'],
    [{ command: 'a', scopes: ['${NAME}'] }, 'scopes.0'],
    [{ url: '${NAME}' }, 'url'],
    [{ url: '${NAME}://example.com' }, 'url'],
    [{ url: 'https://${NAME}/x' }, 'url'],
    [{ url: 'https://${NAME:-example.com/x}' }, 'url'],
    [{ url: 'https://example.com:${NAME}' }, 'url'],
    [{ url: 'https://example.com', bearerTokenEnvVar: '${NAME}' }, 'bearerTokenEnvVar'],
    [{ url: 'https://example.com', headersHelper: { command: '${NAME}' } }, 'headersHelper.command'],
    [{ url: 'https://example.com', envHeaders: { A: '${NAME}' } }, 'envHeaders.A'],
    [{ url: 'https://example.com', oauth: { clientId: '${NAME}' } }, 'oauth.clientId'],
  ]
  for (const [entry, field] of rows) {
    const { problems, definition } = await loadEntry(entry, { NAME: 'CANARY' })
    expect([entry, brief(problems)]).toEqual([entry, [`error CONFIG_EXPANSION_MISPLACED ${field}`]])
    expect(definition.problem).toBeDefined()
    expect(JSON.stringify(definition)).not.toContain('CANARY')
  }
})

verifies('config.010', async () => {
  const config = await load(
    `{"mcpServers":{
    "good": { "command": "a", "args": ["\${SET}"] },
    "missing": { "command": "a",
      "env": { "TOKEN": "x\${UNSET}" }, "args": ["\${OTHER}"] },
    "editor": { "command": "a", "args": ["\${workspaceFolder}/x"] },
    "off": { "command": "a", "args": ["\${UNSET}"], "enabled": false }
  }}`,
    { SET: '1' },
  )
  expect(usable(config)).toEqual(['good', 'off'])
  expect(config.problems.map(({ message }) => message)).toEqual([
    `${config.file}:4:27: server "missing": "env.TOKEN" needs the variable UNSET, which is not set (set it, or write \${NAME:-default}).`,
    `${config.file}:4:50: server "missing": "args.0" needs the variable OTHER, which is not set (set it, or write \${NAME:-default}).`,
    `${config.file}:5:43: server "editor": "args.0" needs the variable workspaceFolder, which is not set (it is an editor variable; write the path).`,
  ])
})

verifies('config.011', async () => {
  const { problems, definition } = await loadEntry({
    url: 'https://example.com',
    headers: { Authorization: 'Bearer ${input:token}' },
  })
  expect(brief(problems)).toEqual(['error CONFIG_INPUT_NEEDED headers.Authorization'])
  expect(definition.problem?.code).toBe('CONFIG_INPUT_NEEDED')
})

verifies('config.012', async () => {
  const { problems, definition } = await loadEntry({
    command: 'a',
    args: ['%USERPROFILE%\\x', 'echo $HOME', '100%25%'],
    env: { A: '$TOKEN', B: 'costs $5', C: 'Bearer $TOKEN' },
  })
  expect(definition.problem).toBeUndefined()
  expect(brief(problems)).toEqual([
    'warning CONFIG_EXPANSION_SYNTAX args.0',
    'warning CONFIG_EXPANSION_SYNTAX env.A',
    'warning CONFIG_EXPANSION_SYNTAX env.C',
  ])
  const malformed = await loadEntry({ command: 'a', args: ['${', '${}', '${1X}', '${A:-${B}}', '${A-b}'] })
  expect(malformed.problems.map(({ code }) => code)).toEqual(Array(5).fill('CONFIG_EXPANSION_SYNTAX'))
})

verifies('config.013', async () => {
  const url = 'https://example.com/mcp'
  const stdio = { kind: 'stdio', command: 'a', args: [], env: {}, envVars: [] }
  const http = { kind: 'http', url, headers: {}, envHeaders: {} }
  const good: [unknown, Partial<ServerDefinition>][] = [
    [{ type: 'stdio', command: 'a' }, { transport: stdio } as Partial<ServerDefinition>],
    [{ type: 'http', url }, { transport: { ...http, transport: 'streamable' } } as Partial<ServerDefinition>],
    [{ type: 'streamableHttp', url }, { transport: { ...http, transport: 'streamable' } } as Partial<ServerDefinition>],
    [{ type: 'sse', url }, { transport: { ...http, transport: 'sse' } } as Partial<ServerDefinition>],
    [
      { transport: 'streamable-http', url },
      { transport: { ...http, transport: 'streamable' } } as Partial<ServerDefinition>,
    ],
    [{ type: 'remote', url }, { transport: http } as Partial<ServerDefinition>],
    [{ httpUrl: url }, { transport: { ...http, transport: 'streamable' } } as Partial<ServerDefinition>],
    [{ serverUrl: url }, { transport: http } as Partial<ServerDefinition>],
    [{ url, serverUrl: url }, { transport: http } as Partial<ServerDefinition>],
    [{ command: 'a', disabled: true }, { enabled: false }],
    [{ command: 'a', disabled: false, enabled: true }, { enabled: true }],
    [{ command: 'a', timeout: 60 }, { toolTimeoutMs: 60_000 }],
    [{ command: 'a', timeout: 60_000 }, { toolTimeoutMs: 60_000 }],
    [{ command: 'a', timeout: 7, toolTimeoutMs: 5 }, { toolTimeoutMs: 5 }],
    [{ command: ['a', 'b'] }, { transport: { ...stdio, args: ['b'] } } as Partial<ServerDefinition>],
    [
      { command: 'a', environment: { A: 'b' } },
      { transport: { ...stdio, env: { A: 'b' } } } as Partial<ServerDefinition>,
    ],
    [{ command: 'a', tools: ['*'] }, { tools: {} }],
    [{ command: 'a', tools: ['x'] }, { tools: { allow: ['x'] } }],
    [{ command: 'a', includeTools: ['x'], excludeTools: ['y'] }, { tools: { allow: ['x'], deny: ['y'] } }],
    [{ command: 'a', tools: { allow: ['x'] }, excludeTools: ['y'] }, { tools: { allow: ['x'], deny: ['y'] } }],
    [{ command: 'a', name: 'x' }, {}],
  ]
  for (const [entry, expected] of good) {
    const { problems, definition } = await loadEntry(entry)
    expect([entry, brief(problems)]).toEqual([entry, []])
    expect(definition).toMatchObject(expected)
  }
  const doubtful: [unknown, string][] = [
    [{ command: 'a', type: 'http' }, 'error CONFIG_FIELD_CONFLICT type'],
    [{ url, type: 'stdio' }, 'error CONFIG_FIELD_CONFLICT type'],
    [{ url, type: 'websocket' }, 'error CONFIG_FIELD_VALUE type'],
    [{ url, type: 'sse', transport: 'streamable' }, 'error CONFIG_FIELD_CONFLICT type'],
    [{ url, httpUrl: 'https://example.com/other' }, 'error CONFIG_FIELD_CONFLICT httpUrl'],
    [{ command: 'a', disabled: true, enabled: true }, 'error CONFIG_FIELD_CONFLICT disabled'],
    [{ command: 'a', disabled: 'yes' }, 'error CONFIG_FIELD_TYPE disabled'],
    [{ command: 'a', timeout: 2000 }, 'warning CONFIG_FIELD_VALUE timeout'],
    [{ command: ['a', 'b'], args: ['c'] }, 'error CONFIG_FIELD_CONFLICT command'],
    [{ command: [] }, 'error CONFIG_FIELD_TYPE command'],
    [{ command: 'a', environment: {}, env: {} }, 'error CONFIG_FIELD_CONFLICT environment'],
    [{ command: 'a', tools: { allow: [] }, includeTools: ['x'] }, 'error CONFIG_FIELD_CONFLICT includeTools'],
  ]
  for (const [entry, expected] of doubtful) {
    expect([entry, brief((await loadEntry(entry)).problems)]).toEqual([entry, [expected]])
  }
})

verifies('config.014', async () => {
  const { definition, problems } = await loadEntry({
    command: 'a',
    autoApprove: ['x'],
    alwaysAllow: ['x'],
    trust: true,
    envFile: '.env',
  })
  expect(definition.problem).toBeUndefined()
  expect(definition.approvalMode).toBe('auto')
  expect(problems.map(({ severity, code }) => `${severity} ${code}`)).toEqual(
    Array(4).fill('warning CONFIG_FIELD_REFUSED'),
  )
})

verifies('config.015', async () => {
  const user = join(folder, 'user.json')
  const flag = join(folder, 'flag.json')
  await writeFile(
    user,
    '{"mcpServers":{"a":{"command":"user","env":{"A":"1"}},"b":{"command":"user"},"c":{"command":"user"}}}',
  )
  await writeFile(flag, '{"mcpServers":{"b":{"command":"flag"},"c":{"comand":"flag"},"d":{"command":"flag"}}}')
  const config = await loadConfig({
    files: [
      { path: 'user.json', layer: 'user' },
      { path: flag, layer: 'flag' },
      { path: join(folder, 'none.json'), layer: 'user' },
    ],
    cwd: folder,
    env: {},
  })
  expect(
    config.definitions.map(({ name, source, transport, problem }) => [
      name,
      source.layer,
      source.file,
      transport.kind === 'stdio' && transport.command,
      problem?.code,
    ]),
  ).toEqual([
    ['a', 'user', user, 'user', undefined],
    ['b', 'flag', flag, 'flag', undefined],
    ['c', 'flag', flag, '', 'CONFIG_TRANSPORT_MISSING'],
    ['d', 'flag', flag, 'flag', undefined],
  ])
  expect(config.files).toEqual([
    { path: user, layer: 'user', found: true },
    { path: flag, layer: 'flag', found: true },
    { path: join(folder, 'none.json'), layer: 'user', found: false },
  ])
  expect(config.entries.map(({ name, value }) => [name, value])).toEqual([
    ['a', { command: 'user', env: { A: '1' } }],
    ['b', { command: 'flag' }],
    ['c', { comand: 'flag' }],
    ['d', { command: 'flag' }],
  ])
})

verifies('config.016', async () => {
  const good = [
    'a',
    'a/b',
    'Jira & Confluence',
    '日本語',
    '🙂',
    'x'.repeat(128),
    '__proto__',
    'constructor',
    'then',
    ' a',
    '%s',
    '${A}',
  ]
  const text = JSON.stringify({ mcpServers: Object.fromEntries(good.map((name) => [name, { command: 'a' }])) })
  expect(usable(await load(text)).sort()).toEqual([...good].sort())
  const bad = ['', '   ', 'x'.repeat(129), 'a\u0007b', 'a\nb', 'a\u009bb', '\ud800', 'a\u2028b']
  const config = await load(
    JSON.stringify({ mcpServers: Object.fromEntries(bad.map((name) => [name, { command: 'a' }])) }),
  )
  expect(config.definitions).toEqual([])
  expect(config.problems.map(({ code }) => code)).toEqual(Array(bad.length).fill('CONFIG_NAME_INVALID'))
})

verifies('config.017', async () => {
  const rows: [unknown, string][] = [
    [{ command: 'a', toolTimeoutMs: 0 }, 'error CONFIG_FIELD_VALUE toolTimeoutMs'],
    [{ command: 'a', toolTimeoutMs: -1 }, 'error CONFIG_FIELD_VALUE toolTimeoutMs'],
    [{ command: 'a', toolTimeoutMs: 1.5 }, 'error CONFIG_FIELD_VALUE toolTimeoutMs'],
    [{ command: 'a', startupTimeoutMs: 86_400_001 }, 'error CONFIG_FIELD_VALUE startupTimeoutMs'],
    [{ command: 'a', messageBytesMax: 1023 }, 'error CONFIG_FIELD_VALUE messageBytesMax'],
    [{ command: 'a', messageBytesMax: 2 ** 31 }, 'error CONFIG_FIELD_VALUE messageBytesMax'],
    [{ command: 'a', isolation: 'thread' }, 'error CONFIG_FIELD_VALUE isolation'],
    [{ command: 'a', omitToolsFrom: ['models'] }, 'error CONFIG_FIELD_VALUE omitToolsFrom.0'],
    [{ command: 'a', environment: 'docker' }, 'error CONFIG_FIELD_VALUE environment'],
    [{ command: 'a', envVars: [{ name: 'A', source: 'remote' }] }, 'error CONFIG_FIELD_VALUE envVars.0.source'],
    [{ command: 'a', envVars: ['A=B'] }, 'error CONFIG_FIELD_VALUE envVars.0'],
    [{ command: 'a', env: { 'A=B': 'c' } }, 'warning CONFIG_FIELD_VALUE env.A=B'],
    [{ command: 'a', env: { A: 1 } }, 'error CONFIG_FIELD_TYPE env.A'],
    [{ command: 'a', args: ['a\0b'] }, 'error CONFIG_FIELD_VALUE args.0'],
    [{ command: 'a', args: Array(1025).fill('') }, 'error CONFIG_FIELD_VALUE args'],
    [{ command: 'a', cwd: null }, 'error CONFIG_FIELD_TYPE cwd'],
    [{ command: 'a', toolTimeoutMs: 4_000_000 }, 'warning CONFIG_FIELD_CONFLICT toolTimeoutMs'],
    [{ command: ' ' }, 'error CONFIG_FIELD_VALUE command'],
    [{ url: 'example.com' }, 'error CONFIG_FIELD_VALUE url'],
    [{ url: 'ftp://example.com' }, 'error CONFIG_FIELD_VALUE url'],
    [{ url: 'https://example.com', headersHelper: 'x y' }, 'error CONFIG_FIELD_TYPE headersHelper'],
    [{ url: 'https://example.com', headersHelper: {} }, 'error CONFIG_FIELD_VALUE headersHelper'],
    [{ url: 'https://example.com', headers: { 'a b': 'c' } }, 'warning CONFIG_FIELD_VALUE headers.a b'],
    [
      { url: 'https://example.com', headers: { 'Content-Length': '1' } },
      'warning CONFIG_FIELD_VALUE headers.Content-Length',
    ],
    [{ url: 'https://example.com', oauth: { callbackPort: 0 } }, 'error CONFIG_FIELD_VALUE oauth.callbackPort'],
    ['text', 'error CONFIG_FIELD_TYPE -'],
    [null, 'error CONFIG_FIELD_TYPE -'],
  ]
  for (const [entry, expected] of rows) {
    const { problems, definition } = await loadEntry(entry)
    expect([entry, brief(problems)]).toEqual([entry, [expected]])
    expect(definition.problem !== undefined).toBe(expected.startsWith('error'))
  }

  const shapes: [string, string][] = [
    ['[]', 'CONFIG_SHAPE'],
    ['"x"', 'CONFIG_SHAPE'],
    ['{"mcpServers":[]}', 'CONFIG_SHAPE'],
    [`{"mcpServers":{"a":{"command":"x","env":${'['.repeat(100_000)}`, 'CONFIG_SYNTAX'],
    [' '.repeat(4 * 1024 * 1024 + 1), 'CONFIG_FILE_TOO_LARGE'],
  ]
  for (const [text, code] of shapes) expect((await load(text)).problems.map((problem) => problem.code)).toEqual([code])
  for (const text of ['', ' \n', '// nothing yet\n', '{}', '{"mcpServers":{}}']) {
    expect(await load(text)).toMatchObject({ definitions: [], problems: [] })
  }

  const many = Object.fromEntries(Array.from({ length: 1002 }, (_, index) => [`server ${index}`, { command: 'a' }]))
  const tooMany = await load(JSON.stringify({ mcpServers: many }))
  expect(tooMany.definitions.length).toBe(1000)
  expect(tooMany.problems.map(({ code, severity }) => `${severity} ${code}`)).toEqual(['error CONFIG_SERVERS_TOO_MANY'])

  const noisy = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`stranger ${index}`, 1]))
  const noise = await load(JSON.stringify({ mcpServers: { a: { command: 'a', ...noisy } } }))
  expect(noise.problems.length).toBe(201)
  expect(noise.problems.at(-1)?.message).toMatch(/700 more problems are not listed/)
  expect(usable(noise)).toEqual(['a'])
})

verifies('security.100', async () => {
  const secret = 'CANARY-d41d8cd9'
  const entries: unknown[] = [
    { url: 'https://example.com', bearerToken: secret },
    { command: 'a', bearerToken: secret },
    { url: 'https://example.com', oauth: { clientSecret: secret } },
    { url: `https://user:${secret}@example.com` },
    { url: secret },
    { url: 'https://example.com', auth: secret },
    { url: 'https://example.com', transport: secret },
    { url: 'https://example.com', headers: { A: [secret] } },
    { url: 'https://example.com', headers: { A: `${secret}\n` }, type: secret },
    {
      command: 'a',
      args: [`\${${secret}}`, `${secret}\${`, `\${GONE}${secret}`],
      env: { A: `$${secret}`, B: `${secret}\0` },
    },
    { command: `${secret}\${A}`, toolTimeoutMs: secret, tools: secret, startup: secret },
    { command: 'a', args: ['${CANARY_VAR}\0'] },
  ]
  for (const entry of entries) {
    const { problems, definition } = await loadEntry(entry, { CANARY_VAR: secret })
    expect([entry, problems.length > 0, definition.problem !== undefined]).toEqual([entry, true, true])
    expect(JSON.stringify(problems)).not.toContain(secret)
  }
})

verifies('security.101', async () => {
  const env = { OUTER: '${INNER}', INNER: 'CANARY', HOMELY: '~/x', DOLLARS: '$' }
  const { definition } = await loadEntry(
    { command: 'a', args: ['${OUTER}', '${HOMELY}', '${DOLLARS}{INNER}', '${GONE:-~/x}'] },
    env,
  )
  expect(definition.transport).toMatchObject({ args: ['${INNER}', '~/x', '${INNER}', '~/x'] })
})

verifies('security.102', async () => {
  const env = { EVIL: 'x?a=b&c=d#e', HOST: '//evil.example/', UP: '@evil.example' }
  const url = async (text: string): Promise<string> => {
    const { definition } = await loadEntry({ url: text }, env)
    return definition.transport.kind === 'http' ? definition.transport.url : ''
  }
  expect(await url('https://example.com/${EVIL}')).toBe('https://example.com/x%3Fa%3Db%26c%3Dd%23e')
  expect(await url('https://example.com/?k=${EVIL}&l=1')).toBe('https://example.com/?k=x%3Fa%3Db%26c%3Dd%23e&l=1')
  for (const text of ['https://example.com${HOST}', 'https://example.com${UP}']) expect(await url(text)).toBe('')
  expect(new URL(await url('https://example.com/${HOST}')).host).toBe('example.com')
  expect(new URL(await url('https://example.com/?${UP}')).host).toBe('example.com')
})

verifies('security.103', async () => {
  const text = `{
    "__proto__": { "polluted": 1 }, "constructor": { "prototype": { "polluted": 1 } },
    "mcpServers": {
      "__proto__": { "command": "a", "env": { "__proto__": "b", "constructor": "c" } },
      "toString": { "command": "a", "__proto__": { "enabled": false }, "constructor": 1 },
      "web": { "url": "https://example.com", "headers": { "__proto__": "x", "toString": "y" } },
      "over": { "command": "a", "tools": { "overrides": { "__proto__": { "idempotent": true } }, "__proto__": {} } }
    }
  }`
  const config = await load(text)
  expect(usable(config)).toEqual(['__proto__', 'toString', 'web', 'over'])
  const [first, second, web, over] = config.definitions
  expect(first?.transport).toMatchObject({ command: 'a' })
  expect(Object.entries((first?.transport.kind === 'stdio' && first.transport.env) || {})).toEqual([
    ['__proto__', 'b'],
    ['constructor', 'c'],
  ])
  expect(second?.enabled).toBe(true)
  expect(Object.keys((web?.transport.kind === 'http' && web.transport.headers) || {})).toEqual([
    '__proto__',
    'toString',
  ])
  expect(Object.entries(over?.tools.overrides ?? {})).toEqual([['__proto__', { idempotent: true }]])
  expect(Object.keys(config.entries[0]?.value['env'] ?? {})).toEqual(['__proto__', 'constructor'])
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  expect(Object.prototype.toString).toBe(Object.getPrototypeOf({}).toString)
})

verifies('security.104', async () => {
  const names = ['github', 'gіthub', 'GitHub', 'github ', 'git\u200bhub', 'ｇｉｔｈｕｂ', 'gitlab']
  const config = await load(
    JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, { command: 'a' }])) }),
  )
  expect(config.problems.map(({ code, server }) => [code, server])).toEqual(
    names.slice(1, -1).map((name) => ['CONFIG_NAME_LOOKALIKE', name]),
  )
  expect(usable(config)).toEqual(names)
})

verifies('security.107', async () => {
  const entry = { url: 'https://example.com', trustAnnotations: true, auth: 'account', hosted: true }
  const own = await loadEntry(entry)
  expect(own.problems).toEqual([])
  expect(own.definition).toMatchObject({ trustAnnotations: true, auth: 'account', hosted: true })
  const given = await loadEntry(entry, {}, 'flag')
  expect(brief(given.problems)).toEqual([
    'warning CONFIG_FIELD_REFUSED trustAnnotations',
    'warning CONFIG_FIELD_REFUSED auth',
    'warning CONFIG_FIELD_REFUSED hosted',
  ])
  expect(given.definition).toMatchObject({ trustAnnotations: false, auth: 'oauth', hosted: false })
})

verifies('security.108', async () => {
  const env = { BIG: 'x'.repeat(100_000) }
  const one = await loadEntry({ command: 'a', args: ['${BIG}'.repeat(100)] }, env)
  expect(brief(one.problems)).toEqual(['error CONFIG_FIELD_VALUE args.0'])
  const many = await loadEntry({ command: 'a', args: Array(1000).fill('${BIG}') }, env)
  expect(many.definition.problem?.code).toBe('CONFIG_FIELD_VALUE')
  expect(JSON.stringify(many.problems)).not.toContain('xxx')
})

verifies('auth.144', async () => {
  const url = 'https://example.com'
  const known = { clientId: 'id', issuer: 'https://as.example' }
  const rows: [object, string[]][] = [
    [{ grant: 'authorization-code' }, []],
    [{ grant: 'client-credentials', ...known, clientSecretEnvVar: 'S' }, []],
    [{ grant: 'client-credentials', ...known, privateKeyFile: 'key.pem' }, []],
    [{ grant: 'workload', ...known, assertionFile: 'token' }, []],
    [{ grant: 'client-credentials', ...known }, ['"clientSecretEnvVar" or "privateKeyFile"']],
    [{ grant: 'client-credentials', issuer: known.issuer, clientSecretEnvVar: 'S' }, ['"clientId"']],
    [{ grant: 'client-credentials', clientId: 'id', clientSecretEnvVar: 'S' }, ['"issuer"']],
    [{ grant: 'workload', ...known, clientSecretEnvVar: 'S' }, ['"assertionFile"']],
  ]
  for (const [oauth, missing] of rows) {
    const { problems } = await loadEntry({ url, oauth })
    expect([oauth, problems.map(({ message }) => /needs (.*?) too/.exec(message)?.[1])]).toEqual([oauth, missing])
  }
  const { definition } = await loadEntry({ url, oauth: { ...known, grant: 'workload', assertionFile: 'a/token' } })
  expect(definition?.oauth?.assertionFile).toMatch(/^\/.*\/a\/token$/)
})

test('warns of a credential on an unencrypted address, and only there', async () => {
  const warned = await loadEntry({ url: 'http://example.com', bearerTokenEnvVar: 'T' })
  expect(brief(warned.problems)).toEqual(['warning CONFIG_FIELD_CONFLICT url'])
  for (const url of ['https://example.com', 'http://127.0.0.1:9', 'http://localhost:9', 'http://[::1]:9']) {
    expect((await loadEntry({ url, bearerTokenEnvVar: 'T' })).problems).toEqual([])
  }
})

test('fills in the same defaults for a server defined in code', () => {
  const definition = defineServer({
    name: 'x',
    required: true,
    transport: { kind: 'http', url: 'https://example.com', headers: {}, envHeaders: {} },
  })
  expect(definition).toMatchObject({ source: { layer: 'host' }, auth: 'oauth', startup: 'eager', enabled: true })
})
