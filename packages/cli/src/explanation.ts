// What is known about a name, as labelled lines for a person. Pure: the time is an argument.
import type { CatalogNote, PlannedServer, ServerLife, ServerStatus, ToolLife } from '@convoke/host'
import { agoText, clockText } from './age.ts'
import { shellWord } from './shell-word.ts'

/** One labelled line. */
export type ExplainedLine = readonly [label: string, text: string]

/** What is told about a server besides its life. */
export interface ServerFacts {
  readonly life: ServerLife
  /** What an ordinary start would do. */
  readonly plan: { readonly row: PlannedServer; readonly reason: string } | undefined
  /** Places of entries of the same name that do not count. */
  readonly shadowed: readonly string[]
  readonly nowMs: number
}

/** Most notes that are written out. */
const NOTES_SHOWN_MAX = 8

/** Everything about a server. */
export function serverLines({ life, plan, shadowed, nowMs }: ServerFacts): readonly ExplainedLine[] {
  const { status, declaredBy, environment, lastFailure, notes } = life
  const { state, sinceAtMs, reason, nextRetryAtMs, transport, protocolVersion, pid } = status
  const isNotUsed = reason?.code === 'CONFIG_PROBLEM'
  const parts = [transport, protocolVersion, pid === undefined ? undefined : `pid ${pid}`].filter(
    (part) => part !== undefined,
  )
  const next = nextStep(status)
  return [
    ['state', `${isNotUsed ? 'not used' : state} since ${clockText(sinceAtMs, nowMs)} (${parts.join(', ')})`],
    // That of a sleeping one is about this very command.
    ...(reason === undefined || state === 'dormant' ? [] : [['why', reason.message] as const]),
    ...(nextRetryAtMs === undefined ? [] : [['next try', `not before ${clockText(nextRetryAtMs, nowMs)}`] as const]),
    ...(next === undefined ? [] : [['to do', next] as const]),
    ...(lastFailure === undefined || lastFailure.message === reason?.message
      ? []
      : [['failed', `${clockText(lastFailure.atMs, nowMs)} ${lastFailure.code}: ${lastFailure.message}`] as const]),
    ['declared', declaredText(declaredBy)],
    ...shadowed.map((place): ExplainedLine => ['in place of', place]),
    ...(environment === 'local' ? [] : [['runs in', environment] as const]),
    ...(plan === undefined ? [] : [['plan', `${plan.row.action}: ${plan.reason}`] as const]),
    ['tools', toolsText(life)],
    ['catalog', catalogText(life.cache, nowMs)],
    ...noteLines(notes),
  ]
}

/** Everything about a tool. */
export function toolLines(life: ToolLife, nowMs: number): readonly ExplainedLine[] {
  const { shownAs, missingBecause, declaredBy, filter, omittedFrom, renamedBecause, connector, cache } = life
  return [
    ...(missingBecause === undefined ? [] : [['not shown', missingBecause] as const]),
    ...(shownAs === undefined ? [] : namesOf(shownAs)),
    ...(renamedBecause === undefined ? [] : [['renamed', renamedBecause] as const]),
    ['declared', declaredText(declaredBy)],
    ['filter', `${filter.verdict}: ${filter.because}`],
    ...(life.visibility === 'hidden'
      ? [['models', 'do not see it: its server hides it from them; it can be called by name'] as const]
      : []),
    ...(omittedFrom.length === 0 ? [] : [['not in', `${omittedFrom.join(', ')} (omitToolsFrom)`] as const]),
    ...(connector === undefined ? [] : [['connector', connectorText(connector)] as const]),
    ...(life.from === 'nowhere' ? [] : [['listed', listedText(life, nowMs)] as const]),
    ['catalog', catalogText(toolCache(cache), nowMs)],
  ]
}

function namesOf({ flat, namespaced }: NonNullable<ToolLife['shownAs']>): readonly ExplainedLine[] {
  if (namespaced === undefined) return [['shown as', flat]]
  return [
    ['shown as', flat],
    ['to models', `${namespaced.namespace} ${namespaced.tool}`],
  ]
}

const connectorText = ({ id, name }: NonNullable<ToolLife['connector']>): string =>
  name === undefined ? id : `${name} (${id})`

const listedText = ({ from, sinceAtMs }: ToolLife, nowMs: number): string =>
  sinceAtMs === undefined ? from : `${from}, ${agoText(sinceAtMs, nowMs)}`

function toolCache(cache: ToolLife['cache']): ServerLife['cache'] {
  if (cache.kind !== 'kept') return cache
  const { atMs, staleBecause } = cache
  return {
    ...{ kind: 'kept', listedAtMs: atMs, capabilities: {} },
    ...(staleBecause === undefined ? {} : { staleBecause }),
  }
}

function catalogText(cache: ServerLife['cache'], nowMs: number): string {
  switch (cache.kind) {
    case 'empty':
      return 'nothing is kept of it yet'
    case 'none':
      return `not kept: ${cache.because}`
    case 'kept': {
      const kept = `kept, as listed ${agoText(cache.listedAtMs, nowMs)}`
      return cache.staleBecause === undefined ? kept : `${kept}; may be stale: ${cache.staleBecause}`
    }
  }
}

function toolsText({ tools: { from, shown, hidden, filtered } }: ServerLife): string {
  if (from === 'nowhere') return 'not known'
  const rest = [
    ...(hidden === 0 ? [] : [`${hidden} of them hidden from models`]),
    ...(filtered === 0 ? [] : [`${filtered} left out by its filter`]),
  ]
  return [`${shown}, ${from === 'live' ? 'live' : 'from an earlier run'}`, ...rest].join('; ')
}

function declaredText({ source, plugin }: ServerLife['declaredBy']): string {
  const { layer, file, line, column } = source
  const by = plugin === undefined ? '' : `, plugin ${plugin}`
  return file === undefined ? `${layer}${by}` : `${placeText({ file, line, column })} (${layer}${by})`
}

/** A place in a file, as editors open it. */
export function placeText({
  file,
  line,
  column,
}: {
  readonly file: string
  readonly line?: number | undefined
  readonly column?: number | undefined
}): string {
  return [file, line, column].filter((part) => part !== undefined).join(':')
}

function noteLines(notes: readonly CatalogNote[]): readonly ExplainedLine[] {
  const lines = notes
    .slice(0, NOTES_SHOWN_MAX)
    .map(({ item, kind, reason }): ExplainedLine => ['note', `${item} ${kind}: ${reason}`])
  const more = notes.length - NOTES_SHOWN_MAX
  return more > 0 ? [...lines, ['note', `… and ${more} more (all with --json)`]] : lines
}

/** What a person can do about the state; undefined where the reason says it, or where nothing is to be done. */
export function nextStep({ name, state, reason }: ServerStatus): string | undefined {
  const server = shellWord(name)
  switch (state) {
    case 'dormant':
      return `nothing: it starts when it is needed; convoke status --live --server ${server} starts it now`
    case 'starting':
    case 'installing':
      return 'wait longer with --wait MS'
    case 'failed':
    case 'cancelled':
      return `mend what is named above; convoke status --server ${server} tries it again`
    case 'disabled':
      return reason?.code === 'CONFIG_PROBLEM' ? 'mend its entry' : undefined
    case 'ready':
    case 'needs-auth':
    case 'needs-input':
    case 'needs-approval':
      return undefined
  }
}

/** Words of `text` in lines of at most `columns` characters; a longer word has a line of its own. */
export function wrapText(text: string, columns: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > columns) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line]
}
