import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { verifies } from '@convoke/testkit'
import { expect } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const read = (file: string): Promise<string> => readFile(resolve(root, file), 'utf8')

/** The strings of a union type or of a constant list, read from the source: the type is gone at run time. */
function codesIn(source: string, name: string): string[] {
  const body = source.split(new RegExp(`export (?:type|const) ${name} =`))[1]?.split(/\n\n/)[0] ?? ''
  return [...body.matchAll(/^\s*\|?\s*'([^']+)'/gm)].map(([, code]) => code ?? '')
}

const KINDS = [
  { file: 'packages/host/src/base/errors.ts', name: 'HostErrorCode', page: 'HostErrorCode' },
  { file: 'packages/wire/src/errors.ts', name: 'WireErrorCode', page: 'WireErrorCode' },
  { file: 'packages/gateway/src/errors.ts', name: 'GATEWAY_ERROR_CODES', page: 'GatewayErrorCode' },
]

verifies('house.050', async () => {
  const page = await read('docs/errors.md')
  for (const kind of KINDS) {
    const codes = codesIn(await read(kind.file), kind.name)
    const section = page.split(`## ${kind.page}\n`)[1]?.split('\n## ')[0] ?? ''
    const rows = [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, code]) => code ?? '')
    expect(codes.length, kind.name).toBeGreaterThan(3)
    expect(rows.toSorted(), kind.page).toEqual(codes.toSorted())
  }
})
