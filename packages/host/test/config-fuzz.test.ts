// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables are what is tested here
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkServer, type LoadedConfig, loadConfig, type ServerDefinition } from '@convoke/host'
import { verifies } from '@convoke/testkit'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseDocument } from '../src/config/document.ts'
import { withoutServer, withServer } from '../src/config/edit-text.ts'
import { expandVariables } from '../src/config/expand.ts'

const numRuns = Number(process.env['CONVOKE_FUZZ_RUNS'] ?? 1_000)
/** Cases that write a file cost more. */
const fileRuns = Math.min(numRuns, 2_000)
const CANARY = 'CANARY-4711'
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'convoke-fuzz-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function load(text: string): Promise<LoadedConfig> {
  const path = join(folder, 'fuzzed.json')
  await writeFile(path, text)
  return loadConfig({ files: [{ path, layer: 'user' }], env: { SECRET: CANARY }, homeDirectory: '/h' })
}

const settings = ({ source: _, ...rest }: ServerDefinition): object => rest
const usable = ({ definitions }: LoadedConfig): readonly ServerDefinition[] =>
  definitions.filter(({ problem, enabled }) => problem === undefined && enabled)

const ORIGINAL = `{
  // all of it
  "mcpServers": {
    "one": { "command": "a", "args": ["x", "y"], "env": { "T": "\${SECRET}" }, "tools": { "deny": ["d1", "d2"] } },
    "two": { "url": "https://example.com/\${SECRET}", "headers": { "A": "b" }, "enabled": true, },
    /* between */
    "three": { "tools": { "allow": ["only"], "overrides": { "only": { "idempotent": false } } }, "command": "c", "isolation": "session" }
  },
}
`

verifies(
  'security.109',
  async () => {
    const whole = new Map(usable(await load(ORIGINAL)).map((definition) => [definition.name, settings(definition)]))
    expect([...whole.keys()]).toEqual(['one', 'two', 'three'])
    // Braces and the like inside of texts are no structure; their quotes are.
    const blanked = ORIGINAL.replace(/"[^"]*"/g, (text) => `"${'.'.repeat(text.length - 2)}"`)
    const structure = [...blanked.matchAll(/[{}[\],:"]/g)].map(({ index }) => index)
    const edit = fc.oneof(
      fc.record({ kind: fc.constant('remove' as const), at: fc.constantFrom(...structure) }),
      fc.record({
        kind: fc.constant('insert' as const),
        at: fc.constantFrom(...structure.filter((at) => ORIGINAL[at] !== '"')),
        put: fc.constantFrom('{', '}', '[', ']', ',', ':'),
      }),
      fc.record({ kind: fc.constant('cut' as const), at: fc.nat(ORIGINAL.length) }),
    )
    await fc.assert(
      fc.asyncProperty(edit, async (change) => {
        const { at } = change
        const rest = change.kind === 'remove' ? ORIGINAL.slice(at + 1) : ORIGINAL.slice(at)
        const text =
          change.kind === 'cut'
            ? ORIGINAL.slice(0, at)
            : ORIGINAL.slice(0, at) + (change.kind === 'insert' ? change.put : '') + rest
        for (const definition of usable(await load(text))) {
          const original = whole.get(definition.name)
          if (original !== undefined) expect([text, settings(definition)]).toEqual([text, original])
        }
      }),
      { numRuns: fileRuns },
    )
  },
  120_000,
)

test('never fails for any text, and never shows a value', async () => {
  const piece = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '//',
    '/*',
    '*/',
    '\n',
    '\\u',
    '\u0000',
    '\ud800',
    '"mcpServers":',
    '"a":',
    '"command":',
    `"${CANARY}"`,
    '"args":',
    '"env":',
    '"url":',
    'null',
    '1e999',
    '-',
    'true',
    '${',
    '}',
    '~',
    '\uFEFF',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.oneof(piece, fc.string({ maxLength: 6 })), { maxLength: 60 }), async (pieces) => {
      const config = await load(pieces.join(''))
      const keys = new Set(config.definitions.map(({ name }) => name))
      for (const { message } of config.problems)
        if (!keys.has(CANARY)) expect(message.replaceAll(`"${CANARY}"`, '')).not.toContain(CANARY)
    }),
    { numRuns: fileRuns },
  )
}, 120_000)

test('checks any entry without failing, and what it accepts can be started', () => {
  const value = fc.jsonValue({ maxDepth: 3 })
  const key = fc.constantFrom(
    'command',
    'args',
    'env',
    'envVars',
    'cwd',
    'url',
    'headers',
    'headersHelper',
    'transport',
    'type',
    'tools',
    'timeout',
    'disabled',
    'enabled',
    'oauth',
    'environment',
    'includeTools',
    'httpUrl',
    'ca',
    'toolTimeoutMs',
    '__proto__',
    'x',
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value), { maxLength: 8 }), fc.string(), (members, name) => {
      const entry = Object.fromEntries(members)
      const problems = checkServer(name, entry, { env: {} })
      if (problems.some(({ severity }) => severity === 'error')) return
      expect(
        entry['enabled'] === false ||
          entry['disabled'] === true ||
          'command' in entry ||
          'url' in entry ||
          'httpUrl' in entry,
      ).toBe(true)
    }),
    { numRuns },
  )
})

test('expands any text without failing, and leaves nothing that would expand again', () => {
  const piece = fc.constantFrom('$', '{', '}', '${', '$${', 'A', ':-', 'env:', 'input:', '~', ' ', '${A}', '${B:-x}')
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const outcome = expandVariables(pieces.join(''), { env: { A: '${A}' }, homeDirectory: '/h' })
      if (outcome.kind === 'text') expect(outcome.text.length).toBeLessThan(200)
    }),
    { numRuns },
  )
})

test('adds and removes in any text and leaves every other value and comment as it was', () => {
  const space = fc.constantFrom('', ' ', '\n', '\n  ', '\t', '/* k */', ' // k\n')
  const name = fc.constantFrom('a', 'b', '__proto__', 'x"y', 'ü', '1')
  const object = fc
    .tuple(
      space,
      fc.array(fc.tuple(name, fc.constantFrom('', ' ', '\n'), space), { maxLength: 4 }),
      space,
      fc.boolean(),
    )
    .map(
      ([head, members, tail, comma]) =>
        `{${head}${members.map(([key, before, after]) => `${JSON.stringify(key)}:${before}{"command":"${key.length}"}${after}`).join(',')}${comma && members.length > 0 ? ',' : ''}${tail}}`,
    )
  const file = fc
    .tuple(space, object, space, fc.boolean())
    .map(
      ([head, servers, tail, other]) =>
        `${head}{${other ? '"$schema":"s",' : ''}${tail}"mcpServers":${servers}${tail}}${tail}`,
    )
  fc.assert(
    fc.property(file, name, (text, added) => {
      const comments = (one: string): number => one.split('k').length
      const after = withServer(text, added, { command: 'new' })
      expect([text, after, parseDocument(after).faults]).toEqual([text, after, []])
      expect([after, comments(after)]).toEqual([after, comments(text)])
      const back = withoutServer(after, added) ?? ''
      expect([after, back, parseDocument(back).faults]).toEqual([after, back, []])
      expect([back, comments(back)]).toEqual([back, comments(text)])
      expect(withoutServer(back, added)).toBeUndefined()
      expect(back).not.toContain(`${JSON.stringify(added)}:`)
    }),
    { numRuns },
  )
})
