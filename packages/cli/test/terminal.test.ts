import { verifies } from '@convoke/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '../src/index.ts'
import { jsonText } from '../src/json-text.ts'
import { signatureOf, typeText } from '../src/signature.ts'
import { Home } from './command.ts'
import { scripted } from './servers.ts'

let home: Home
beforeAll(async () => {
  home = await Home.make()
})
afterAll(() => home[Symbol.asyncDispose]())

const EVIL = '\u001b]52;c;Q0FOQVJZ\u0007\u001b[2K\u001b[1A\u009b31m\r\b\u001b]0;t\u0007\u202e\u200b\u{e0041}x'
/** Everything that steers a terminal or hides text, and is not a line end. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u{e0000}-\u{e007f}]/u

verifies('security.120', async () => {
  const { stdin: _, ...rest } = { stdin: '' }
  void rest
  const content = [
    { type: 'text', text: EVIL },
    { type: 'resource_link', uri: `x:${EVIL}`, name: EVIL },
    { type: EVIL },
    { type: 'image', data: 'AAAA', mimeType: EVIL },
  ]
  await home.configure({
    evil: scripted({
      name: EVIL,
      stderr: [EVIL],
      tools: [
        {
          name: 'say',
          title: EVIL,
          description: EVIL,
          inputSchema: { type: 'object', properties: { [EVIL]: { enum: [EVIL] } } },
          does: { kind: 'content', content, structuredContent: { a: EVIL } },
        },
        { name: 'fail', inputSchema: { type: 'object' }, does: { kind: 'tool-error', text: EVIL } },
        { name: 'refuse', inputSchema: { type: 'object' }, does: { kind: 'rpc-error', code: 1, message: EVIL } },
        {
          name: 'ask',
          inputSchema: { type: 'object' },
          does: {
            kind: 'ask',
            method: 'elicitation/create',
            params: { message: EVIL, requestedSchema: { type: 'object', properties: {} } },
          },
        },
      ],
    }),
    exits: scripted({ exitAtStart: { code: 1 }, stderr: [EVIL] }),
    'bad\u200b\u202ename': { command: `c${EVIL}`, args: [EVIL], [`key${EVIL}`]: 1 },
  })
  const lines = [
    ['tools'],
    ['status'],
    ['call', 'evil/say'],
    ['call', 'evil/fail'],
    ['call', 'evil/refuse'],
    ['call', 'evil/ask'],
    ['call', `evil/${EVIL}`],
    ['call', `nobody${EVIL}/x`],
    ['list'],
    ['get', 'bad\u200b\u202ename'],
    ['tools', '--server', EVIL],
    [EVIL],
    ['tools', '--json'],
    ['status', '--json'],
    ['call', 'evil/say', '--json'],
    ['list', '--json'],
  ]
  for (const words of lines) {
    const { stdout, stderr } = await home.run(words)
    expect([words, UNSAFE.exec(stdout)?.index, UNSAFE.exec(stderr)?.index]).toEqual([words, undefined, undefined])
  }
  const { code, answer } = await home.json(['call', 'evil/say'])
  expect(code).toBe(EXIT.ok)
  expect((answer as { content: { text: string }[] }).content[0]?.text).toBe(EVIL)
})

test('writes JSON that decodes to exactly what it was given', () => {
  for (const value of [EVIL, { [EVIL]: [EVIL] }, '\ud800', '\u2028\u2029\ufeff', 'ü 日本 🙂', null, 1.5]) {
    const text = jsonText(value)
    expect(text).not.toMatch(UNSAFE)
    expect(JSON.parse(text)).toEqual(value)
  }
  expect(jsonText('ü 日本 🙂')).toBe('"ü 日本 🙂"')
})

test('writes the signature of every schema there can be', () => {
  const rows: [unknown, string][] = [
    [{}, 'any'],
    [true, 'any'],
    [null, 'any'],
    [{ type: 'string' }, 'string'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ const: 'x' }, '"x"'],
    [{ enum: ['a', 1, null] }, '"a" | 1 | null'],
    [{ enum: Array.from({ length: 14 }, (_, index) => index) }, `${[...Array(12).keys()].join(' | ')} | … 2 more`],
    [{ type: 'array' }, 'any[]'],
    [{ type: 'array', items: { enum: ['a', 'b'] } }, '("a" | "b")[]'],
    [{ anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'number' } }] }, 'string | number[]'],
    [{ type: 'object', properties: { 'a b': { type: 'string' } }, required: ['a b'] }, '{ "a b": string }'],
    [{ type: 'object', properties: 5, required: 'x' }, 'object'],
    [{ type: 7 }, 'any'],
  ]
  for (const [schema, expected] of rows) expect([schema, typeText(schema)]).toEqual([schema, expected])
  const deep: Record<string, unknown> = { type: 'object', properties: {} }
  deep['properties'] = { self: deep }
  expect(signatureOf(deep)).toBe('(self?: { self?: { self?: object } })')
  const wide = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`parameter${index}`, { type: 'string' }]))
  expect(signatureOf({ properties: wide }).length).toBeLessThanOrEqual(600)
})

test('colours only a terminal that wants them', async () => {
  await home.configure({ s: scripted() })
  const colours = new RegExp(`${String.fromCharCode(27)}\\[1m`)
  expect((await home.run(['list'])).stdout).not.toMatch(colours)
  expect((await home.startOnTerminal(['list']).ended).stdout).toMatch(colours)
  for (const [words, env] of [
    [['list', '--no-color'], {}],
    [['list'], { NO_COLOR: '1' }],
    [['list'], { TERM: 'dumb' }],
  ] as const) {
    expect((await home.startOnTerminal(words, { env }).ended).stdout).not.toMatch(colours)
  }
})

verifies('security.124', async () => {
  const ask = (url: string, index: number): object => ({
    name: `ask${index}`,
    inputSchema: { type: 'object' },
    does: {
      kind: 'ask',
      method: 'elicitation/create',
      params: { mode: 'url', message: 'Sign in here', elicitationId: '1', url },
    },
  })
  const bad = [
    'file:///etc/passwd',
    'javascript:alert(1)',
    '-a Calculator',
    'https://user:pw@a/',
    'http://192.168.0.5/auth',
    '',
  ]
  const good = 'https://example.com/$(touch CANARY)'
  await home.configure({ s: scripted({ tools: [...bad, good].map(ask) as never }) })
  for (const [index, url] of bad.entries()) {
    const run = home.startOnTerminal(['call', `s/ask${index}`])
    const { code, stdout } = await run.ended
    expect([url, code]).toEqual([url, EXIT.ok])
    expect(stdout).toContain('"decline"')
  }
  expect((await home.run(['call', `s/ask${bad.length}`])).stdout).toContain('"decline"')
  const refused = home.startOnTerminal(['call', `s/ask${bad.length}`])
  await refused.seen(/https:\/\/example\.com\/\$\(touch%20CANARY\)/)
  await refused.seen(/└/)
  refused.child.stdin?.write('\r')
  expect((await refused.ended).stdout).toContain('"decline"')
  const accepted = home.startOnTerminal(['call', `s/ask${bad.length}`])
  await accepted.seen(/└/)
  accepted.child.stdin?.write('y')
  expect((await accepted.ended).stdout).toContain('"accept"')
})
