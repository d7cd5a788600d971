// A sign-in with the person who runs the command: the page, the browser, and what is pasted when that cannot come back.
import { cleanLine, type Host, openPage, type SignedIn, type SignInOptions } from '@convoke/host'
import type { CommandContext } from './context.ts'
import { StdinLines } from './stdin-lines.ts'
import { type Piece, styled } from './terminal.ts'

/** How it goes. */
export interface SignInHereOptions {
  /** Absent: what the server, its entry and earlier refusals ask for. Empty: none. */
  readonly scopes?: readonly string[] | undefined
  /** `paste`: no browser is opened, and whatever comes on stdin is taken for what was pasted. Default `browser`. */
  readonly way?: 'browser' | 'paste'
  /** For the person, in milliseconds. Default: that of the host, 300,000. */
  readonly timeoutMs?: number | undefined
}

/**
 * Lets the person sign in. The address is always shown, on stderr; on a terminal what the browser ended at can be pasted all the while.
 * @throws {HostError} as `Host.signIn`
 */
export async function signInHere(
  context: CommandContext,
  { host, server }: { readonly host: Host; readonly server: string },
  { scopes, way = 'browser', timeoutMs }: SignInHereOptions = {},
): Promise<SignedIn> {
  const { terminal, signal } = context
  const takesPaste = way === 'paste' || terminal.isInteractive
  using lines = takesPaste ? new StdinLines() : undefined
  return await host.signIn(server, {
    ...noticesFor(context, { server, way, takesPaste }),
    ...(lines === undefined ? {} : { paste: lines }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    signal,
  })
}

interface NoticeFacts {
  readonly server: string
  readonly way: 'browser' | 'paste'
  readonly takesPaste: boolean
}

function noticesFor(
  { terminal }: CommandContext,
  { server, way, takesPaste }: NoticeFacts,
): Pick<SignInOptions, 'onPage' | 'openPage' | 'onPasteRefused' | 'onScopesDropped'> {
  return {
    onPage({ url, listens }) {
      terminal.notice('Sign in to ', styled('bold', cleanLine(server)), ' at this address:')
      terminal.notice('  ', url)
      if (takesPaste)
        terminal.notice(
          styled(
            'dim',
            listens
              ? 'If the browser cannot come back to this machine, paste the address that it ended at:'
              : 'Paste the address that the browser ended at:',
          ),
        )
    },
    ...(way === 'paste'
      ? {}
      : {
          async openPage(url: string) {
            const page = await openPage(url)
            if (page.kind === 'opened') return
            const hint = takesPaste
              ? ''
              : ' On another machine, --no-browser takes the address that the browser ended at.'
            terminal.notice(`No browser was opened (${cleanLine(page.because)}): open the address yourself.${hint}`)
          },
        }),
    onPasteRefused: (because) => terminal.notice(styled('yellow', 'not taken: '), cleanLine(because)),
    onScopesDropped: () =>
      terminal.notice('The authorization server refused the scopes that were asked for; asking again without any.'),
  }
}

/** Who has signed in, as a person knows them. */
export function subjectText(subject: SignedIn['subject']): string | undefined {
  if (subject === undefined) return undefined
  const { id, name } = subject
  return cleanLine(name === undefined || name === id ? id : `${name} (${id})`)
}

const PLACES: Readonly<Record<SignedIn['store']['kind'], string>> = {
  keyring: 'the keyring of this system',
  file: 'an encrypted file',
  memory: 'memory, until this command ends',
}

/** Where a sign-in is kept. */
export function placeText(kind: SignedIn['store']['kind']): string {
  return PLACES[kind]
}

/** The lines that tell of a sign-in: data, and what is said besides. */
export function signedInLines({ server, subject, scopes, store }: SignedIn): {
  readonly data: readonly Piece[]
  readonly notices: readonly string[]
} {
  const who = subjectText(subject)
  const granted = scopes === undefined ? [] : [scopes.length === 0 ? 'no scopes' : `scopes: ${scopes.join(' ')}`]
  return {
    data: [
      'Signed in to ',
      styled('bold', cleanLine(server)),
      ...(who === undefined ? [] : [' as ', styled('bold', who)]),
      ...granted.map((text) => ` (${cleanLine(text, 400)})`),
    ],
    notices: [`Kept in ${placeText(store.kind)}: ${cleanLine(store.because, 300)}.`],
  }
}
