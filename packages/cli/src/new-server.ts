// A server that has just been added: does it want a sign-in, and shall that be now?
import { cleanLine, HostError } from '@convoke/host'
import { readConfiguration } from './configuration.ts'
import { openHost } from './connect.ts'
import type { CommandContext } from './context.ts'
import { shellOperand } from './shell-word.ts'
import { signedInLines, signInHere } from './sign-in-here.ts'
import { styled } from './terminal.ts'

/** The question itself has 5 s; in all, in milliseconds. */
const ASK_MS = 6_000

/** Undefined: it was not asked, or it did not say. What goes wrong here is no fault of what was added. */
export async function askAboutSignIn(context: CommandContext, name: string): Promise<boolean | undefined> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(ASK_MS)])
  try {
    const definition = await definitionOf(context, name)
    if (definition === undefined || !definition.enabled || definition.transport.kind !== 'http') return undefined
    await using host = await openHost(context, { definitions: [definition] }, { start: [] })
    const [status] = await host.signInStatuses({ probe: true, signal })
    if (status?.state === 'signed-out') return true
    return status?.state === 'open' ? false : undefined
  } catch {
    context.signal.throwIfAborted()
    return undefined
  }
}

async function definitionOf(context: CommandContext, name: string) {
  // Its problems have been told when it was checked.
  const { definitions } = await readConfiguration(context, [])
  return definitions.find((one) => one.name === name && one.problem === undefined)
}

/** Says that it wants a sign-in. On a terminal the person may sign in at once; the entry stays, whatever comes of that. */
export async function offerSignIn(context: CommandContext, name: string): Promise<void> {
  const { terminal, options, signal } = context
  const command = `convoke login ${shellOperand(name)}`
  terminal.notice(styled('bold', cleanLine(name)), ` wants a sign-in: ${command}`)
  if (options.json || !terminal.isInteractive) return
  const { askYes } = await import('./prompts.ts')
  if (!(await askYes('Sign in now?', true, signal))) return
  const definition = await definitionOf(context, name)
  if (definition === undefined) return
  try {
    await using host = await openHost(context, { definitions: [definition] }, { start: [] })
    const { data, notices } = signedInLines(await signInHere(context, { host, server: name }))
    terminal.print(...data)
    for (const notice of notices) terminal.notice(notice)
  } catch (error) {
    if (!HostError.is(error) || error.code === 'CANCELLED') throw error
    terminal.notice(styled('red', 'error: '), error.message)
    terminal.notice(`It has been added all the same; sign in another time: ${command}`)
  }
}
