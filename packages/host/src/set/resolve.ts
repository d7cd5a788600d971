// What a person means by a text that names a tool. Pure.
import { closestNames } from '../base/index.ts'
import type { CatalogTool, ToolView } from '../catalog/index.ts'
import type { ServerStatus } from '../events/index.ts'
import type { ToolResolution } from './binding.ts'

/** Where to look. */
export interface ResolveFacts {
  readonly view: ToolView
  readonly statuses: readonly ServerStatus[]
}

/** `SERVER/TOOL` (the longest configured key that fits wins) or a flat name. */
export function resolveTool(text: string, facts: ResolveFacts): ToolResolution {
  const flat = facts.view.byName.get(text)
  const server = longestKey(text, facts.statuses)
  const rawName = server === undefined ? '' : text.slice(server.name.length + 1)
  const named = server === undefined ? undefined : facts.view.raw(server.name, rawName)
  const found = [...new Set([flat, named])].filter((tool): tool is CatalogTool => tool !== undefined)
  const [only] = found
  if (found.length > 1) return { kind: 'ambiguous', tools: found }
  if (only !== undefined) return { kind: 'found', tool: only }
  if (server !== undefined) return missingTool(server, rawName, facts)
  return text.includes('/') ? missingServer(text, facts) : missingFlat(text, facts)
}

function longestKey(text: string, statuses: readonly ServerStatus[]): ServerStatus | undefined {
  let best: ServerStatus | undefined
  for (const status of statuses) {
    const fits = text.startsWith(`${status.name}/`) && text.length > status.name.length + 1
    if (fits && status.name.length > (best?.name.length ?? -1)) best = status
  }
  return best
}

function missingTool(status: ServerStatus, rawName: string, { view }: ResolveFacts): ToolResolution {
  const { name: server } = status
  if (status.state !== 'ready') return { kind: 'server-not-ready', server, status, near: [] }
  const own = view.tools.filter((tool) => tool.server === server).map((tool) => tool.rawName)
  return { kind: 'unknown-tool', server, status, near: closestNames(rawName, own).map((name) => `${server}/${name}`) }
}

function missingServer(text: string, { statuses }: ResolveFacts): ToolResolution {
  const server = text.slice(0, text.lastIndexOf('/'))
  const near = closestNames(
    server,
    statuses.map(({ name }) => name),
  )
  return { kind: 'unknown-server', server, near }
}

/** The beginning of a flat name may say whose tool it would be. */
function missingFlat(text: string, { view, statuses }: ResolveFacts): ToolResolution {
  const owner = statuses.find(
    ({ name, state }) =>
      state !== 'ready' && (text === name || text.startsWith(`${name.replace(/[^A-Za-z0-9_-]/gu, '_')}__`)),
  )
  if (owner !== undefined) return { kind: 'server-not-ready', server: owner.name, status: owner, near: [] }
  const slashed = view.tools.map(({ server, rawName }) => `${server}/${rawName}`)
  const near = closestNames(text, [...view.tools.map(({ name }) => name), ...view.tools.map(({ rawName }) => rawName)])
  const byRaw = view.tools.flatMap(({ rawName }, index) => (rawName === text ? [slashed[index] ?? text] : []))
  return { kind: 'unknown-tool', near: byRaw.length > 0 ? byRaw.slice(0, 5) : near }
}
