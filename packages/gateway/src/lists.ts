// Tool lists as they leave: made once for each revision of the catalog and each era, never per request.
import type { CatalogTool, JsonObject } from '@convoke/host'
import type { Reply } from '@convoke/wire/server'
import { isObject } from './asks.ts'

const SERVER_KEY = 'convoke/server'
/** How long a modern client may rely on a list, in ms; it hears of changes as well, if it listens. */
export const LIST_TTL_MS: number = 5_000

/** One list, ready for both eras. */
export interface PreparedList {
  readonly legacy: Reply
  readonly modern: Reply
}

/** Prepares the answer to a list request. `extra`: further members of the result. */
export function prepareList(member: string, items: readonly JsonObject[], extra: JsonObject = {}): PreparedList {
  const list = `"${member}":${JSON.stringify(items)}${membersOf(extra)}`
  const bytes = (text: string): Reply => ({ kind: 'result-bytes', body: Buffer.from(text), typed: true })
  return {
    legacy: bytes(`{${list}}`),
    modern: bytes(`{"resultType":"complete","ttlMs":${LIST_TTL_MS},"cacheScope":"private",${list}}`),
  }
}

function membersOf(extra: JsonObject): string {
  const text = JSON.stringify(extra)
  return text === '{}' ? '' : `,${text.slice(1, -1)}`
}

/** Every tool under its flat name, with the server it belongs to. The definitions have been cleaned by the catalog. */
export function prepareTools(tools: readonly CatalogTool[]): PreparedList {
  return prepareList(
    'tools',
    tools.map(({ definition, name, server }) => ({ ...definition, name, _meta: stamped(definition['_meta'], server) })),
  )
}

/** Items of several servers, under the name they have here; and which servers did not answer. */
export function prepareItems(
  member: string,
  items: readonly { readonly definition: JsonObject; readonly server: string; readonly name?: string }[],
  failures: readonly { readonly server: string; readonly code: string; readonly message: string }[],
): PreparedList {
  const listed = items.map(({ definition, server, name }) => ({
    ...definition,
    ...(name === undefined ? {} : { name }),
    _meta: stamped(definition['_meta'], server),
  }))
  return prepareList(member, listed, failures.length === 0 ? {} : { _meta: { 'convoke/failures': failures } })
}

function stamped(meta: unknown, server: string): JsonObject {
  return { ...(isObject(meta) ? meta : {}), [SERVER_KEY]: server }
}
