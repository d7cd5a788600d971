// Takes the view that a binding shows: waits for whom it must, and puts together what is there then.
import { untilAborted } from '../base/index.ts'
import type { ServerCatalog, ToolSnapshot } from '../catalog/index.ts'
import { type BoundServer, boundServer } from './bound-server.ts'
import { CapturedView, type CaptureKey, sameCapture } from './captured-view.ts'
import { type CaptureFacts, type CaptureWait, decideSource, decideWait } from './decide.ts'
import type { Generation, Member } from './generation.ts'
import type { LiveServers } from './live-servers.ts'
import type { Perspective } from './perspective.ts'
import type { CallServices } from './prepared-call.ts'
import type { SetSettings } from './settings.ts'
import { settled } from './settled.ts'
import type { ViewMemory } from './view-memory.ts'

/** Whom a binding waits for. */
export interface CaptureRequest {
  /** Servers that have to have settled, by name; those that sleep are started. */
  readonly requiredServers?: readonly string[]
  /** Plugins, by id, whose selected servers have to have settled. */
  readonly requiredPlugins?: readonly string[]
  /** `none`: what is starting is left out at once, unless it is required. Default `startup`: until the grace of the starts is over. */
  readonly grace?: 'none' | 'startup'
  /** Who looks. Default: whoever sees everything that is configured, and knows of no plugins besides. */
  readonly perspective?: Perspective
  /** Stops the waiting. */
  readonly signal?: AbortSignal
}

/** What captures of one set share. */
export interface CaptureTools {
  readonly settings: SetSettings
  readonly services: CallServices
  readonly live: LiveServers
  /** Is the connection of this catalog no longer the one that is published under its name? */
  isSilenced(catalog: ServerCatalog): boolean
  /** Named once for equal snapshots, whatever generation they belong to. */
  readonly views: ViewMemory
}

/**
 * The view of a generation as it is once nobody has to be waited for any more.
 * @throws {HostError} `CANCELLED` on abort, which stops the waiting only.
 */
export async function capture(
  generation: Generation,
  request: CaptureRequest,
  tools: CaptureTools,
): Promise<CapturedView> {
  const asked = askedFor(generation, request)
  const known = knownTools(generation)
  const waits = membersFor(generation, request.perspective).flatMap((member) => {
    const wait = decideWait(factsOf(member, asked))
    return wait === 'none' || (wait === 'grace' && request.grace === 'none')
      ? []
      : [waitFor(member, wait, { generation, tools })]
  })
  if (waits.length > 0) await untilAborted(Promise.all(waits), request.signal)
  return viewOf(generation, known, { tools, perspective: request.perspective })
}

function askedFor(
  { members }: Generation,
  { requiredServers = [], requiredPlugins = [] }: CaptureRequest,
): ReadonlySet<string> {
  const asked = new Set(requiredServers)
  if (requiredPlugins.length === 0) return asked
  for (const [name, { desired }] of members) {
    const { plugin } = desired.definition
    if (plugin?.isSelected === true && requiredPlugins.includes(plugin.id)) asked.add(name)
  }
  return asked
}

/** A cached catalog that is there when a binding begins stays in it, unless its server says meanwhile that it must not be kept. */
function knownTools({ members }: Generation): Map<Member, ToolSnapshot> {
  const known = new Map<Member, ToolSnapshot>()
  for (const member of members.values()) {
    if (member.connection.value.state.kind === 'ready') continue
    const { cached } = member.view
    if (cached !== undefined) known.set(member, cached)
  }
  return known
}

function factsOf({ connection, view, desired }: Member, asked: ReadonlySet<string>): CaptureFacts {
  const { definition, traits, start } = desired
  return {
    state: connection.value.state.kind,
    hasVisibleCachedTools: view.hasVisibleCachedTools,
    hasCatalog: view.cached !== undefined,
    isHosted: traits.isHosted,
    isRequired: definition.required,
    isAskedFor: asked.has(definition.name),
    isOnDemand: start === 'on-demand',
  }
}

interface Waiting {
  readonly generation: Generation
  readonly tools: CaptureTools
}

async function waitFor(member: Member, wait: CaptureWait, { generation, tools }: Waiting): Promise<void> {
  const { settings } = tools
  const connection = member.connection.value
  const { platform } = settings.protocol
  const wasAsleep = connection.state.kind === 'dormant'
  if (wasAsleep) connection.need()
  const { graceMs } = settings
  if (wait === 'settle' || graceMs === 0) {
    // Whoever asks for no grace at all says so to everybody who shares it.
    if (wait === 'grace') member.view.cache?.graceDeadlineMs(graceMs, platform.now())
    return settled(connection)
  }
  const nowMs = platform.now()
  const shared = member.view.cache?.graceDeadlineMs(graceMs, nowMs)
  if (shared === undefined && !wasAsleep) generation.graceEndsAtMs ??= nowMs + graceMs
  const endsAtMs = shared ?? (wasAsleep ? nowMs + graceMs : (generation.graceEndsAtMs ?? nowMs))
  if (endsAtMs <= nowMs) return
  await firstOf(member, endsAtMs - nowMs, settings)
}

/** Until the server has settled, a peer has published its catalog, or the time is over. */
async function firstOf({ connection, view }: Member, ms: number, { protocol }: SetSettings): Promise<void> {
  const { platform } = protocol
  let stop: () => void = () => {}
  let timer: object | undefined
  const over = new Promise<void>((resolve) => {
    timer = platform.setTimer(resolve, ms)
    const { cache } = view
    if (cache !== undefined)
      stop = cache.onChange(() => {
        if (view.hasVisibleCachedTools) resolve()
      })
  })
  try {
    await Promise.race([over, settled(connection.value)])
  } finally {
    platform.clearTimer(timer)
    stop()
  }
}

interface Looking {
  readonly tools: CaptureTools
  readonly perspective: Perspective | undefined
}

function viewOf(
  generation: Generation,
  known: ReadonlyMap<Member, ToolSnapshot>,
  { tools, perspective }: Looking,
): CapturedView {
  const { settings, services, live } = tools
  const members = membersFor(generation, perspective)
  const shown = members.map((member) => attributed(member, shownBy(member, known.get(member)), perspective))
  const key = keyOf(members, shown)
  const before = perspective === undefined ? generation.captured : perspective.captured.get(generation)
  if (before !== undefined && sameCapture(before.key, key)) return before
  const captured = new CapturedView({
    key,
    servers: shown.flatMap(({ bound }) => bound ?? []),
    view: (perspective?.views ?? tools.views).viewOf(
      shown.flatMap(({ snapshot }) => snapshot ?? []),
      settings.names,
    ),
    statuses: members.map(({ connection }) => connection.value.status),
    live,
    services,
    nameCharsMax: settings.names.nameCharsMax,
  })
  if (perspective === undefined) generation.captured = captured
  else perspective.captured.set(generation, captured)
  for (const member of members) rememberMissed(member, generation, tools)
  return captured
}

function membersFor({ members }: Generation, perspective: Perspective | undefined): readonly Member[] {
  const all = [...members.values()]
  return perspective === undefined ? all : all.filter(({ desired }) => perspective.sees(desired.definition))
}

function attributed(member: Member, shown: Shown, perspective: Perspective | undefined): Shown {
  const { snapshot } = shown
  if (perspective === undefined || snapshot === undefined) return shown
  return { ...shown, snapshot: member.view.attributed(snapshot, perspective.attribution) }
}

interface Shown {
  readonly bound?: BoundServer
  readonly snapshot?: ToolSnapshot
}

function shownBy(member: Member, known: ToolSnapshot | undefined): Shown {
  const { connection, view } = member
  const cached = view.isCacheDisabled ? undefined : (view.cached ?? known)
  switch (decideSource({ state: connection.value.state.kind, hasCatalog: cached !== undefined })) {
    case 'live': {
      const bound = boundServer(member)
      if (bound === undefined) return {}
      return view.live === undefined ? { bound } : { bound, snapshot: view.live }
    }
    case 'cached':
      return cached === undefined ? {} : { snapshot: cached }
    case 'nothing':
      return {}
  }
}

/** Undefined while a required server is not there: whoever asks again is told anew. */
function keyOf(members: readonly Member[], shown: readonly Shown[]): CaptureKey | undefined {
  const isComplete = members.every(
    ({ desired, connection }) => !desired.definition.required || connection.value.state.kind === 'ready',
  )
  if (!isComplete) return undefined
  return members.flatMap(({ connection, catalog }, index) => [
    connection.value.state,
    connection.value.session,
    catalog.revision,
    catalog.problem,
    shown[index]?.snapshot,
  ])
}

/** Told once when it comes: it is in the next binding. */
function rememberMissed({ connection, catalog, desired }: Member, generation: Generation, tools: CaptureTools): void {
  const { value } = connection
  if (!value.isStarting || generation.missed.has(value)) return
  generation.missed.add(value)
  void value.whenSettled().then(() => {
    generation.missed.delete(value)
    if (value.state.kind === 'ready' && !tools.isSilenced(catalog))
      tools.settings.emit({
        kind: 'server.joined-late',
        server: desired.definition.name,
        generation: generation.number,
      })
  })
}
