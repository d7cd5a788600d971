import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CONFIG_PROBLEM_CODES } from '@convoke/host'
import { expect, test } from 'vitest'
import { ALIASES, type FieldSpec, REFUSED_KEYS, SECRET_KEYS, SERVER_FIELDS } from '../src/config/fields.ts'

const page = await readFile(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8')
const rows = page.split('\n').filter((line) => line.startsWith('| `'))

function* fields(specs: Readonly<Record<string, FieldSpec>>, prefix = ''): Generator<[string, FieldSpec]> {
  for (const [name, spec] of Object.entries(specs)) {
    yield [prefix + name, spec]
    if (spec.kind === 'object') yield* fields(spec.fields, `${prefix}${name}.`)
    if (spec.kind === 'object-map') yield* fields(spec.fields, `${prefix}${name}.TOOL.`)
  }
}

test('documents every field with its default', () => {
  for (const [name, spec] of fields(SERVER_FIELDS)) {
    const row = rows.find((line) => line.startsWith(`| \`${name}\` |`))
    expect([name, row]).toEqual([name, expect.any(String)])
    const value = spec.default === undefined ? '–' : `\`${JSON.stringify(spec.default)}\``
    expect([name, row?.split(' | ').includes(value)]).toEqual([name, true])
  }
})

test('documents every spelling of other clients', () => {
  for (const name of [...Object.keys(ALIASES), ...REFUSED_KEYS.keys(), ...SECRET_KEYS.keys()]) {
    expect([name, page.includes(`\`${name}\``)]).toEqual([name, true])
  }
})

test('documents every problem, and no other', () => {
  const documented = rows.map((line) => /^\| `(CONFIG_[A-Z_]+)`/.exec(line)?.[1]).filter((code) => code !== undefined)
  expect(documented.toSorted()).toEqual([...CONFIG_PROBLEM_CODES].toSorted())
})
