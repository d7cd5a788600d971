// Whose resource is it? For subscriptions; reading finds its own way in the host.
import type { JsonObject } from '@convoke/host'
import { INVALID_PARAMS, rpcFailure } from '@convoke/wire/server'
import type { View } from './view.ts'

const SERVER_KEY = 'convoke/server'

/** The server that offers the URI. @throws {WireError} when nobody does, or several and `meta` does not say which */
export async function ownerOf({ binding }: View, uri: string, meta: JsonObject | undefined): Promise<string> {
  const wanted = meta?.[SERVER_KEY]
  if (typeof wanted === 'string') return wanted
  const listed = (await binding.resources()).items.filter((item) => item.uri === uri).map(({ server }) => server)
  if (listed.length > 0) return only(uri, listed)
  const templates = (await binding.resourceTemplates()).items
  const matching = templates.filter(({ uriTemplate }) => mayStand(uriTemplate, uri)).map(({ server }) => server)
  if (matching.length > 0) return only(uri, matching)
  throw rpcFailure(INVALID_PARAMS, `No server lists ${uri}`, { uri })
}

function only(uri: string, owners: readonly string[]): string {
  const servers = [...new Set(owners)]
  if (servers.length === 1) return servers[0] as string
  throw rpcFailure(
    INVALID_PARAMS,
    `Several servers offer ${uri}: ${servers.join(', ')}. Say which one is meant (_meta["${SERVER_KEY}"])`,
    { uri, servers },
  )
}

/** Compares what stands around the variables; linear in the length of both. */
function mayStand(template: string, uri: string): boolean {
  const first = template.indexOf('{')
  const last = template.lastIndexOf('}')
  if (first <= 0 || last < first) return template === uri
  const [before, after] = [template.slice(0, first), template.slice(last + 1)]
  return uri.length > before.length + after.length && uri.startsWith(before) && uri.endsWith(after)
}
