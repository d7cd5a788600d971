// The `Mcp-Param-*` headers of a tool call must repeat the arguments that the tool's schema marks with `x-mcp-header`.
import { type HeaderParameter, headerParameters } from '../mirror.ts'
import type { JsonObject, RpcError } from '../protocol.ts'
import { isObject } from '../validate.ts'
import { decodeHeader, type HeaderOf, mismatch } from './modern-rules.ts'

const known = new WeakMap<JsonObject, readonly HeaderParameter[]>()

/** Where the parameter headers disagree with the arguments; undefined: nowhere. A schema is looked through once. */
export function paramHeaderFault(schema: JsonObject, params: JsonObject, header: HeaderOf): RpcError | undefined {
  let parameters = known.get(schema)
  if (parameters === undefined) {
    const found = headerParameters({ name: '', inputSchema: schema })
    known.set(schema, (parameters = 'invalid' in found ? [] : found))
  }
  for (const { header: name, path } of parameters) {
    const value = path.reduce<unknown>((inner, key) => (isObject(inner) ? inner[key] : undefined), params['arguments'])
    const shown = decodeHeader(header(name.toLowerCase()))
    const expected = value !== undefined && value !== null
    if (expected ? !(shown.kind === 'value' && isSame(shown.value, value)) : shown.kind !== 'absent')
      return mismatch(name, header(name.toLowerCase()))
  }
  return undefined
}

function isSame(shown: string, value: unknown): boolean {
  if (typeof value === 'number') return shown.trim() !== '' && Number(shown) === value
  return shown === String(value)
}
