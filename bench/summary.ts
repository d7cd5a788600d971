// Medians and ratios of samples, and the tables. Pure.
import type { Sample } from './execute.ts'
import type { Metric, Workload } from './plan.ts'

/** One figure of one peer over all rounds. */
export interface Cell {
  readonly key: string
  readonly median: number | undefined
  /** Median of the ratios to the floor of the same round. */
  readonly ratio: number | undefined
}

export interface PeerRow {
  readonly peer: string
  /** Rounds that gave figures. */
  readonly rounds: number
  readonly cells: readonly Cell[]
  readonly errors: readonly string[]
}

export interface WorkloadTable {
  readonly workload: string
  readonly metrics: readonly Metric[]
  readonly rows: readonly PeerRow[]
}

export function median(values: readonly number[]): number | undefined {
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length >> 1
  const upper = sorted[middle]
  if (upper === undefined || sorted.length % 2 === 1) return upper
  return ((sorted[middle - 1] ?? upper) + upper) / 2
}

/** One row a peer, the floor first. */
export function summarize(workload: Workload, samples: readonly Sample[]): WorkloadTable {
  const floor = new Map(
    samples.filter(({ peer }) => peer === workload.peers[0]).map((sample) => [sample.round, sample]),
  )
  const rows = workload.peers.map((peer): PeerRow => {
    const own = samples.filter((sample) => sample.peer === peer)
    const good = own.filter(({ error }) => error === undefined)
    return {
      peer,
      rounds: good.length,
      cells: workload.metrics.map((metric) => cellOf(metric, good, floor)),
      errors: own.flatMap(({ error }) => (error === undefined ? [] : [error])),
    }
  })
  return { workload: workload.name, metrics: workload.metrics, rows }
}

function cellOf({ key }: Metric, samples: readonly Sample[], floor: ReadonlyMap<number, Sample>): Cell {
  const pairs = samples.flatMap(({ round, figures }) => {
    const value = figures[key]
    return value === undefined ? [] : [{ value, base: floor.get(round)?.figures[key] }]
  })
  const ratios = pairs.flatMap(({ value, base }) => (base === undefined || base === 0 ? [] : [value / base]))
  return { key, median: median(pairs.map(({ value }) => value)), ratio: median(ratios) }
}

/** Whether a figure is where we want it; nothing where we aim at nothing. */
export function meets({ target, better = 'lower' }: Metric, { median: value, ratio }: Cell): boolean | undefined {
  if (target === undefined) return undefined
  const figure = target.of === 'ratio' ? ratio : value
  if (figure === undefined) return undefined
  return better === 'lower' ? figure <= target.at : figure >= target.at
}

export function toMarkdown(tables: readonly WorkloadTable[]): string {
  return tables.map(tableOf).join('\n')
}

function tableOf({ workload, metrics, rows }: WorkloadTable): string {
  const heads = metrics.map(
    (metric) => `${metric.key}${metric.unit === '' ? '' : ` (${metric.unit})`}${goalOf(metric)}`,
  )
  const lines = rows.map(({ peer, rounds, cells, errors }, index) => {
    const figures = cells.map((cell, at) => figureOf(cell, index === 0, metrics[at]))
    const fault = errors[0] === undefined ? '' : ` ${errors.length} failed: ${oneLine(errors[0])}`
    return `| ${peer} | ${figures.join(' | ')} | ${rounds}${fault} |`
  })
  return `### ${workload}\n\n| | ${heads.join(' | ')} | rounds |\n|${'---|'.repeat(heads.length + 2)}\n${lines.join('\n')}\n`
}

function goalOf({ target, better = 'lower', unit }: Metric): string {
  if (target === undefined) return ''
  return `, ${better === 'lower' ? '≤' : '≥'} ${target.at}${target.of === 'ratio' ? '×' : ` ${unit}`.trimEnd()}`
}

function figureOf(cell: Cell, isFloor: boolean, metric: Metric | undefined): string {
  const { median: value, ratio } = cell
  if (value === undefined) return '–'
  const isMissed = !isFloor && metric !== undefined && meets(metric, cell) === false
  const shown = isFloor || ratio === undefined ? short(value) : withRatio(short(value), ratio, metric)
  return isMissed ? `**${shown}**` : shown
}

/** What the aim is about stands first. */
function withRatio(value: string, ratio: number, metric: Metric | undefined): string {
  const times = `${ratio.toFixed(2)}×`
  return metric?.target?.of === 'absolute' ? `${value} (${times})` : `${times} (${value})`
}

function short(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  return Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('|', '/').slice(0, 120)
}
