import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const read = (file: string): Promise<string> => readFile(resolve(root, file), 'utf8')

/** The members of a string union, read from the source: the type is gone at run time. */
function membersOf(source: string, type: string): string[] {
  const body = source.split(`export type ${type} =`)[1]?.split(/\n\n|\nexport |\ninterface |\n\/\*\*/)[0] ?? ''
  return [...body.matchAll(/^\s*\|?\s*'([^']+)'|\|\s*'([^']+)'/gm)].map(([, first, second]) => first ?? second ?? '')
}

test.each([
  ['packages/host/src/base/errors.ts', 'HostErrorCode'],
  ['packages/wire/src/errors.ts', 'WireErrorCode'],
])('every code of %s has one row in docs/errors.md, and no row is a ghost', async (file, type) => {
  const codes = membersOf(await read(file), type)
  const page = await read('docs/errors.md')
  const section = page.split(`## ${type}`)[1]?.split('\n## ')[0] ?? ''
  const rows = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, code]) => code ?? '')
  expect(codes.length).toBeGreaterThan(3)
  expect(rows.toSorted()).toEqual(codes.toSorted())
})
