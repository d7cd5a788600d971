// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested here
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { Home } from './command.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
beforeEach(() => home.configure('{}'))
afterAll(() => home[Symbol.asyncDispose]())

verifies('command.005', async () => {
  const canary = join(home.folder, 'canary')
  await home.configure(`{
  // mine
  "mcpServers": { "old": { "command": "sh", "args": ["-c", "touch ${canary}"] } }
}`)
  const added = await home.run([
    'add',
    'new/one',
    '--env',
    'A=b=c',
    '--env-var',
    'PASSED',
    '--cwd',
    '/srv',
    '--',
    'touch',
    canary,
    '--json',
    '-x',
    '',
  ])
  expect([added.code, added.stdout]).toEqual([0, `Added new/one to ${home.configFile}\n`])
  expect(
    (
      await home.run([
        'add',
        'web',
        '--url',
        'https://example.com/mcp',
        '--header',
        'X-A=b',
        '--bearer-token-env-var',
        'TOKEN',
      ])
    ).code,
  ).toBe(0)
  expect(
    (await home.run(['add', 'pasted', '--entry', '{"type":"http","url":"https://example.com","disabled":true}'])).code,
  ).toBe(0)
  const text = await home.configText()
  expect(text).toContain('// mine')
  expect(JSON.parse(text.replace('// mine', ''))).toEqual({
    mcpServers: {
      old: { command: 'sh', args: ['-c', `touch ${canary}`] },
      'new/one': {
        command: 'touch',
        args: [canary, '--json', '-x', ''],
        env: { A: 'b=c' },
        envVars: ['PASSED'],
        cwd: '/srv',
      },
      web: { url: 'https://example.com/mcp', headers: { 'X-A': 'b' }, bearerTokenEnvVar: 'TOKEN' },
      pasted: { type: 'http', url: 'https://example.com', disabled: true },
    },
  })
  const list = await home.run(['list'])
  expect(list.code).toBe(0)
  expect(list.stdout.split('\n').map((line) => line.replace(/\s+/g, ' ').trim())).toEqual([
    `old enabled user:3 sh -c 'touch ${canary}'`,
    `new/one enabled user:4 touch ${canary} --json -x ''`,
    expect.stringMatching(/^web enabled user:\d+ https:\/\/example\.com\/mcp$/),
    expect.stringMatching(/^pasted disabled user:\d+ https:\/\/example\.com$/),
    '',
  ])
  const { answer } = await home.json(['get', 'new/one'])
  expect(answer).toMatchObject({
    version: 1,
    server: {
      name: 'new/one',
      enabled: true,
      transport: { type: 'stdio', command: 'touch' },
      source: { layer: 'user', file: home.configFile, line: 4, column: 5 },
      entry: { env: { A: '<hidden>' } },
      settings: { startupTimeoutMs: 30_000 },
    },
  })
  expect((await home.run(['get', 'web'])).stdout).toContain('bearerTokenEnvVar: "TOKEN"')
  expect((await home.run(['remove', 'new/one'])).stdout).toBe(`Removed new/one from ${home.configFile}\n`)
  expect(
    Object.keys((JSON.parse((await home.configText()).replace('// mine', '')) as { mcpServers: object }).mcpServers),
  ).toEqual(['old', 'web', 'pasted'])
  await expect(home.startProgram('ls', [canary]).ended).resolves.toMatchObject({ code: 2 })
})

test('writes to and reads from the file of --config', async () => {
  const file = join(home.folder, 'other.json')
  await writeFile(file, '{"mcpServers":{"there":{"command":"x"}}}')
  expect((await home.run(['--config', file, 'add', 'here', '--', 'y'])).code).toBe(0)
  const { answer } = await home.json(['list', '--config', file])
  expect(answer).toMatchObject({ servers: [{ name: 'there', source: { layer: 'flag', file } }, { name: 'here' }] })
  expect(await home.configText()).toBe('{}')
  const elsewhere = await home.run(['remove', 'there'])
  expect(elsewhere.code).toBe(EXIT.usage)
  await home.configure({ mine: { command: 'z' } })
  const other = await home.run(['--config', file, 'remove', 'mine'])
  expect([other.code, other.stderr]).toEqual([
    EXIT.usage,
    expect.stringContaining(`is not in ${file} but in ${home.configFile}`),
  ])
  const absent = await home.run(['list', '--config', join(home.folder, 'absent.json')])
  expect([absent.code, absent.stderr]).toEqual([
    EXIT.configuration,
    expect.stringContaining('absent.json: does not exist'),
  ])
})

verifies('command.006', async () => {
  await home.configure({ taken: { command: 'x' } })
  const before = await home.configText()
  const rows: [string[], RegExp][] = [
    [['add', 'taken', '--', 'y'], /already has a server "taken"\. Replace it with --replace/],
    [['add', '', '--', 'y'], /server name is empty/],
    [['add', 'a\u0007b', '--', 'y'], /cannot be printed/],
    [['add', 'n', '--url', 'ftp://x'], /"url" must start with https:\/\//],
    [['add', 'n', '--url', 'https://user:pw@example.com'], /holds a user name or password/],
    [['add', 'n', '--url', 'https://x', '--', 'y'], /Give exactly one of/],
    [['add', 'n', '--url', 'https://x', '--env', 'A=b'], /are for servers with a command/],
    [['add', 'n', '--header', 'A=b', '--', 'y'], /are for servers with an address/],
    [['add', 'n', '--env', 'A', '--', 'y'], /--env takes NAME=VALUE/],
    [['add', 'n', '--entry', '{"comand":"x"}'], /needs "command"/],
    [['add', 'n', '--entry', '{"url":"https://x","bearerToken":"t"}'], /"bearerToken" is refused/],
    [['add', 'n', '--', '${X}'], /"command" holds a \$\{…\}/],
  ]
  for (const [words, message] of rows) {
    const { code, stdout, stderr } = await home.run(words)
    expect([words, code, stdout]).toEqual([words, EXIT.usage, ''])
    expect(stderr).toMatch(message)
  }
  expect(await home.configText()).toBe(before)
  expect((await home.run(['add', 'taken', '--replace', '--', 'y'])).code).toBe(0)
  const later = await home.run(['add', 'later', '--env', 'A=${NOT_SET_HERE}', '--', 'y'])
  expect([later.code, later.stderr]).toEqual([0, expect.stringContaining('needs the variable NOT_SET_HERE')])
})

verifies('security.121', async () => {
  const secret = 'CANARY-51aa'
  await home.configure({
    one: { command: 'x', env: { TOKEN: secret, REF: '${R}', DEF: `\${R:-${secret}}`, MIX: `${secret}\${R}` } },
    two: {
      url: `https://user:${secret}@example.com`,
      headers: { Authorization: `Bearer ${secret}`, Other: 'Bearer ${R}' },
    },
    three: { url: 'https://example.com/?k=${SECRET_VALUE}', bearerToken: secret, oauth: { clientSecret: secret } },
  })
  const env = { SECRET_VALUE: secret, R: secret }
  for (const words of [
    ['list'],
    ['get', 'one'],
    ['get', 'two'],
    ['get', 'three'],
    ['list', '--json'],
    ['get', 'one', '--json'],
    ['get', 'three', '--json'],
  ]) {
    const { stdout, stderr } = await home.run(words, { env })
    expect([words, (stdout + stderr).includes(secret)]).toEqual([words, false])
  }
  expect((await home.run(['get', 'two'], { env })).stdout).toContain('Bearer ${R}')
  const warned = await home.run(['add', 'four', '--env', `API_TOKEN=${secret}`, '--', 'x'])
  expect(warned.stderr).toContain('env.API_TOKEN is written into the file in the open')
  expect(warned.stderr).not.toContain(secret)
  const refused = await home.run(['serve', '--token', secret])
  expect([refused.code, refused.stderr]).toEqual([EXIT.usage, expect.stringContaining('--token-env')])
})

verifies('command.026', async () => {
  await home.configure('{"mcpServers": ')
  for (const words of [['list'], ['tools'], ['status', '--json']]) {
    const { code, stderr } = await home.run(words)
    expect([words, code]).toEqual([words, EXIT.configuration])
    expect(stderr).toContain(`${home.configFile}:1:`)
  }
  await home.configure({ bad: { comand: 'x' } })
  const { code, answer } = await home.json(['tools'])
  expect(code).toBe(EXIT.configuration)
  expect(answer).toMatchObject({
    tools: [],
    servers: [{ name: 'bad', reason: { message: expect.stringContaining('needs "command"') } }],
  })
})

test('secrets that stand in arguments and in addresses are hidden, references to variables are not', async () => {
  await home.configure(
    JSON.stringify({
      mcpServers: {
        flags: {
          command: 'run',
          args: ['--token', 'canary-1', '--api-key=canary-2', '--password', '${PW}', '--dir', 'kept'],
        },
        header: { command: 'npx', args: ['mcp-remote', 'https://h/x', '--header', 'Authorization: Bearer canary-3'] },
        database: { command: 'pg', args: ['postgres://me:canary-4@db/x'] },
        query: { url: 'https://h/mcp?api_key=canary-5&region=kept' },
      },
    }),
  )
  const outputs = [await home.run(['list']), await home.run(['list', '--json'])]
  for (const name of ['flags', 'header', 'database', 'query']) outputs.push(await home.run(['get', name]))
  const text = outputs.map(({ stdout, stderr }) => stdout + stderr).join('\n')
  expect(text).not.toContain('canary')
  expect(text).toContain('"args":["--token","<hidden>","--api-key=<hidden>","--password","${PW}","--dir","kept"]')
  expect(text).toContain('?api_key=<hidden>&region=kept')
})
