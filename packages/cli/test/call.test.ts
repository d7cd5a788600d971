// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested here
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { everythingStdio, type StdioScript, startScriptedHttp, verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readArguments } from '../src/call-arguments.ts'
import { CommandError } from '../src/command-error.ts'
import { EXIT } from '../src/index.ts'
import { Home } from './command.ts'
import { entryOf, scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

const logging = (folder: string, name: string, script: StdioScript = {}): StdioScript => ({
  ...script,
  name,
  log: join(folder, `${name}.log`),
})
const startsOf = async (name: string): Promise<number> => {
  const text = await readFile(join(home.folder, `${name}.log`), 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line.includes('"start"')).length
}

verifies(['command.011', 'command.012'], async () => {
  const tool = (name: string, text: string): object => ({
    name,
    inputSchema: { type: 'object' },
    does: { kind: 'text', text },
  })
  await home.configure({
    a: scripted(logging(home.folder, 'short', { tools: [tool('b/tool', 'short'), tool('only', 'short')] as never })),
    'a/b': scripted(logging(home.folder, 'long', { tools: [tool('tool', 'long')] as never })),
    'sp ace': scripted(logging(home.folder, 'space', { tools: [tool('tool', 'space')] as never })),
  })
  const call = async (address: string): Promise<[number | null, string]> => {
    const { code, stdout } = await home.run(['call', address])
    return [code, stdout]
  }
  expect(await call('a/b/tool')).toEqual([EXIT.ok, 'long\n'])
  expect([await startsOf('short'), await startsOf('long'), await startsOf('space')]).toEqual([0, 1, 0])
  expect(await call('a/only')).toEqual([EXIT.ok, 'short\n'])
  expect([await startsOf('short'), await startsOf('long'), await startsOf('space')]).toEqual([1, 1, 0])
  expect(await call('sp ace/tool')).toEqual([EXIT.ok, 'space\n'])
  expect(await call('sp_ace__tool')).toEqual([EXIT.ok, 'space\n'])
  expect([await startsOf('short'), await startsOf('space')]).toEqual([1, 2])
  const unknown = await home.run(['call', 'b/tool'])
  expect([unknown.code, unknown.stdout]).toEqual([EXIT.usage, ''])
  expect([await startsOf('short'), await startsOf('long'), await startsOf('space')]).toEqual([1, 1, 2])
})

test('names every candidate of a flat name that two servers share', async () => {
  const tools = [{ name: 'tool', inputSchema: { type: 'object' } }]
  await home.configure({ 'x.y': scripted({ tools }), 'x y': scripted({ tools }) })
  const { code, stderr, stdout } = await home.run(['call', 'x_y__tool'])
  expect([code, stdout]).toEqual([EXIT.usage, ''])
  expect(stderr).toContain('"x_y__tool" is ambiguous: it could be "x y/tool" or "x.y/tool".')
})

verifies('command.013', async () => {
  const schema = {
    type: 'object',
    properties: {
      text: { type: 'string' },
      whole: { type: 'integer' },
      number: { type: 'number' },
      flag: { type: 'boolean' },
      list: { type: 'array', items: { type: 'integer' } },
      texts: { type: 'array', items: { type: 'string' } },
      object: { type: 'object' },
      either: { type: ['string', 'number'] },
      maybe: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
      choice: { enum: ['a', 7] },
      free: {},
    },
    required: ['text'],
  }
  const rows: [string[], unknown][] = [
    [['text=a=b'], { text: 'a=b' }],
    [['text=', 'flag=true'], { text: '', flag: true }],
    [['text=5', 'whole=5', 'number=-1.5e3'], { text: '5', whole: 5, number: -1500 }],
    [['text=x', 'list=1', 'texts=a', 'texts=b,c'], { text: 'x', list: [1], texts: ['a', 'b,c'] }],
    [['text=x', 'list=[1,2]', 'object={"a":[]}'], { text: 'x', list: [1, 2], object: { a: [] } }],
    [['text=x', 'either=12', 'either2=12'], { text: 'x', either: 12, either2: '12' }],
    [['text=x', 'either=007'], { text: 'x', either: '007' }],
    [['text=x', 'maybe=null', 'choice=7', 'free=1'], { text: 'x', maybe: null, choice: 7, free: '1' }],
    [['text=x', 'choice=a', 'free:={"a":1}'], { text: 'x', choice: 'a', free: { a: 1 } }],
    [['text=null', '__proto__=1'], JSON.parse('{"text":"null","__proto__":"1"}')],
  ]
  for (const [words, expected] of rows) expect([words, readArguments(words, schema)]).toEqual([words, expected])
  const faults: [string[], RegExp][] = [
    [['whole=1'], /The tool needs "text"\. Its parameters: \(text: string, /],
    [['text=x', 'whole=1.5'], /"whole" must be integer/],
    [['text=x', 'whole='], /"whole" must be integer/],
    [['text=x', 'whole=0x10'], /"whole" must be integer/],
    [['text=x', 'flag=yes'], /"flag" must be boolean/],
    [['text=x', 'object=5'], /"object" must be object/],
    [['text=x', 'object={'], /The value of "object" is not JSON/],
    [['text=x', 'text=y'], /"text" is given 2 times and is not a list/],
    [['text:=x'], /The value of "text" is not JSON/],
    [['=x'], /is not an argument/],
  ]
  for (const [words, message] of faults) {
    expect(() => readArguments(words, schema)).toThrow(message)
    expect(() => readArguments(words, schema)).toThrow(CommandError)
  }
  expect(() => readArguments(['txt=x'], { ...schema, additionalProperties: false })).toThrow(
    /no parameter "txt"\. Did you mean "text"\?/,
  )
  for (const broken of [
    {},
    { properties: 7, required: 'x' },
    { properties: { a: null }, required: [1] },
    { properties: { a: { type: 5, enum: 3, anyOf: [null] } } },
  ]) {
    expect(readArguments(['a=1'], broken as never)).toEqual({ a: '1' })
  }

  await home.configure({ s: scripted() })
  const file = join(home.folder, 'args.json')
  await writeFile(file, '{"text":"from a file"}')
  expect((await home.run(['call', 's/echo', 'text=from words'])).stdout).toContain('from words')
  expect((await home.run(['call', 's/echo', '--args', '{"text":"from args"}'])).stdout).toContain('from args')
  expect((await home.run(['call', 's/echo', '--args', `@${file}`])).stdout).toContain('from a file')
  expect((await home.run(['call', 's/echo', '-'], { stdin: '{"text":"from stdin"}' })).stdout).toContain('from stdin')
  const nothing = await home.run(['call', 's/echo', '-'])
  expect([nothing.code, nothing.stderr]).toEqual([EXIT.usage, expect.stringContaining('stdin is not JSON')])
})

verifies(['command.014', 'command.021'], async () => {
  await home.configure({
    s: scripted(),
    exits: scripted({ exitAtStart: { code: 3 }, stderr: ['no licence found'] }),
    unset: { command: 'x', args: ['${CONVOKE_TEST_UNSET}'] },
    input: { command: 'x', args: ['${input:key}'] },
    off: { ...scripted(), enabled: false },
  })
  const rows: [string[], number, string, string][] = [
    [['s/echo', 'text=hi'], EXIT.ok, 'ok', ''],
    [['s/structured'], EXIT.ok, 'ok', ''],
    [['s/image'], EXIT.ok, 'ok', ''],
    [['s/fail'], EXIT.toolError, 'tool-error', ''],
    [['s/refuse'], EXIT.failed, 'failed', 'SERVER_ERROR'],
    [['s/late', 'ms=20000', '--timeout', '300'], EXIT.failed, 'failed', ''],
    [['s/crash'], EXIT.unknownOutcome, 'unknown', 'OUTCOME_UNKNOWN'],
    [['s/nothing'], EXIT.usage, 'failed', 'TOOL_UNKNOWN'],
    [['nobody/x'], EXIT.usage, 'failed', 'SERVER_UNKNOWN'],
    [['exits/x'], EXIT.notAvailable, 'failed', 'SERVER_EXITED'],
    [['unset/x'], EXIT.notAvailable, 'failed', ''],
    [['off/x'], EXIT.notAvailable, 'failed', ''],
    [['input/x'], EXIT.needsPerson, 'failed', ''],
  ]
  for (const [words, exit, outcome, errorCode] of rows) {
    const { code, answer, stderr } = await home.json(['call', ...words])
    expect([words, code, answer, stderr]).toEqual([
      words,
      exit,
      expect.objectContaining({ version: 1, outcome }),
      expect.any(String),
    ])
    const { error, content } = answer as { error?: { code: string; message: string }; content: unknown[] }
    expect(Array.isArray(content)).toBe(true)
    expect([words, error !== undefined]).toEqual([words, outcome === 'failed' || outcome === 'unknown'])
    if (errorCode !== '') expect([words, error?.code]).toEqual([words, errorCode])
  }
  const failed = await home.run(['call', 's/fail'])
  expect([failed.stdout, failed.stderr]).toEqual(['It went wrong, as asked\n', 's/fail reported an error\n'])
  const image = await home.run(['call', 's/image'])
  expect(image.stdout).toMatch(/^\[image image\/png, \d+ bytes; use --json for the data\]\n$/)
  expect((await home.run(['call', 'exits/x'])).stderr).toMatch(
    /Server "exits" is not available \(failed\).*no licence found/s,
  )
})

test('asks for a person where a server asks for credentials, and sends a token from a variable', async () => {
  await using web = await startScriptedHttp({ token: 'CANARY-token-0123456789' })
  await home.configure({ open: { url: web.url }, known: { url: web.url, bearerTokenEnvVar: 'WEB_TOKEN' } })
  const refused = await home.json(['call', 'open/echo', 'text=x'])
  expect([refused.code, refused.answer]).toEqual([EXIT.needsPerson, expect.objectContaining({ outcome: 'failed' })])
  const env = { WEB_TOKEN: 'CANARY-token-0123456789' }
  const sent = await home.run(['call', 'known/echo', 'text=x'], { env })
  expect([sent.code, sent.stdout]).toEqual([EXIT.ok, 'x\n'])
  const listed = await home.run(['status', '--live'], { env })
  expect(listed.stdout).toMatch(/^open {3}needs-auth: .*\nknown {2}ready /m)
  expect(listed.stdout + listed.stderr).not.toContain('CANARY')
  const unset = await home.run(['call', 'known/echo', 'text=x'])
  expect([unset.code, unset.stderr]).toEqual([EXIT.needsPerson, expect.stringContaining('WEB_TOKEN')])
})

verifies('command.015', async () => {
  await home.configure({
    weather: scripted({
      tools: [
        {
          name: 'forecast',
          inputSchema: { type: 'object', properties: { city: { type: 'string' } }, additionalProperties: false },
        },
      ],
    }),
  })
  const rows: [string[], RegExp][] = [
    [['call', 'wether/forecast'], /Did you mean "weather\/forecast"/],
    [['call', 'weather/forcast'], /Did you mean "weather\/forecast"/],
    [['call', 'weather__forcast'], /Did you mean "weather__forecast"|Did you mean "weather\/forecast"/],
    [['call', 'weather/forecast', 'ctiy=x'], /Did you mean "city"/],
    [['tools', '--server', 'Weather'], /Did you mean "weather"/],
    [['get', 'weathr'], /Did you mean "weather"/],
    [['remove', 'weathr'], /Did you mean "weather"/],
  ]
  for (const [words, message] of rows) {
    const { code, stderr } = await home.run(words)
    expect([words, code]).toEqual([words, EXIT.usage])
    expect(stderr).toMatch(message)
  }
})

verifies('command.022', async () => {
  await home.configure({ s: scripted() })
  const declined = await home.run(['call', 's/elicit'])
  expect(declined.code).toBe(EXIT.ok)
  expect(declined.stderr).toContain(
    'declined: s asks: What is your name? (no terminal to ask on). Pass --answers JSON, or run this on a terminal.',
  )
  expect(declined.stdout).toContain('"decline"')
  const answered = await home.run(['call', 's/elicit', '--answers', '{"name":"Ada","private":"CANARY"}'])
  expect(answered.stdout).toMatch(/"action":\s*"accept"/)
  expect(answered.stdout).toContain('Ada')
  expect(answered.stdout).not.toContain('CANARY')

  const asked = home.startOnTerminal(['call', 's/elicit'])
  await asked.seen(/└/)
  asked.child.stdin?.write('Grace')
  await asked.seen(/Grace/)
  asked.child.stdin?.write('\r')
  await asked.seen(/Send this to the server/)
  asked.child.stdin?.write('\r')
  const { code, stdout } = await asked.ended
  expect([code, stdout]).toEqual([EXIT.ok, expect.stringMatching(/"accept"[\s\S]*Grace/)])
})

test('runs a real server with typed arguments and structured content', async () => {
  await home.configure({ every: entryOf(everythingStdio()) })
  expect((await home.run(['call', 'every/get-sum', 'a=2', 'b=40'])).stdout).toBe('The sum of 2 and 40 is 42.\n')
  const { answer } = await home.json(['call', 'every/get-structured-content', 'location=Chicago'])
  expect(answer).toMatchObject({ outcome: 'ok', structuredContent: { temperature: expect.any(Number) } })
})
