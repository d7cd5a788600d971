// What a measurement reads: CPU time, memory, quantiles; of this process, or of others by /proc (Linux).
import { readFileSync } from 'node:fs'

const TICK_US = 10_000

/** User and system time of this process, in microseconds. */
export function cpuUs() {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Resident memory of this process, in megabytes. */
export function rssMb() {
  return process.platform === 'linux' ? rssMbOf('self') : process.memoryUsage().rss / 1_048_576
}

export function rssMbOf(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  } catch {
    return 0
  }
}

/** User and system time of another process, in microseconds, exact to a clock tick. */
export function cpuUsOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_US
  } catch {
    return 0
  }
}

export function quantile(values, share) {
  const sorted = [...values].sort((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
}

export const round = (value) => Math.round(value * 1000) / 1000
