/** Reads time stamps of trace files. */
import type { Ms } from '../core/units.ts'

const STAMP = /^(\d{4})-(\d{2})-(\d{2})[ T](\d{2}):(\d{2}):(\d{2}(?:\.\d+)?)(?:Z|([+-])(\d{2}):?(\d{2}))?$/

/** Ms since 1970 of `2023-11-16 18:15:46.6805900`, with an offset if there is one; undefined for anything else. */
export function readStampMs(text: string): Ms | undefined {
  const found = STAMP.exec(text)
  if (found === null) return undefined
  const [year = 0, month = 0, day = 0, hours = 0, minutes = 0, seconds = 0] = found.slice(1, 7).map(Number)
  if (month < 1 || month > 12 || day < 1 || day > 31 || hours > 23 || minutes > 59 || seconds >= 61) {
    return undefined
  }
  const offsetMinutes = Number(found[8] ?? 0) * 60 + Number(found[9] ?? 0)
  const offset = found[7] === '-' ? -offsetMinutes : offsetMinutes
  return ((daysSince1970(year, month, day) * 24 + hours) * 60 + minutes - offset) * 60_000 + seconds * 1000
}

/** Days of the Gregorian calendar, with years that begin in March so that the leap day comes last. */
function daysSince1970(year: number, month: number, day: number): number {
  const marchYear = month > 2 ? year : year - 1
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  const leapDays = Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400)
  return 365 * marchYear + leapDays + dayOfYear - 719_468
}
