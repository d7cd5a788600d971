// One timer for every pending call of the process. It is set to the nearest deadline and does nothing per call while later ones come and go.

export interface DeadlineSource {
  /** Fails what is due, and returns the next deadline (ms on the `performance.now()` clock), or Infinity. */
  sweep(nowMs: number): number
}

const sources = new Set<DeadlineSource>()
let armedForMs = Infinity
let timer: NodeJS.Timeout | undefined

/** Makes sure that `source.sweep` runs at `atMs` or soon after. A source is kept until it has no deadline left at a sweep. */
export function watchDeadline(source: DeadlineSource, atMs: number): void {
  sources.add(source)
  if (atMs < armedForMs) arm(atMs)
}

function arm(atMs: number): void {
  clearTimeout(timer)
  armedForMs = atMs
  if (atMs === Infinity) return
  timer = setTimeout(fire, Math.max(1, Math.ceil(atMs - performance.now())))
  timer.unref() // children and sockets keep the process alive, never the clock
}

function fire(): void {
  armedForMs = Infinity
  const nowMs = performance.now()
  let nextMs = Infinity
  for (const source of sources) {
    const sourceNextMs = source.sweep(nowMs)
    if (sourceNextMs === Infinity) sources.delete(source)
    else nextMs = Math.min(nextMs, sourceNextMs)
  }
  if (nextMs < armedForMs) arm(nextMs) // a sweep may have armed a nearer one
}
