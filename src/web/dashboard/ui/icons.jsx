// icons.jsx - the icons of the page, drawn with one line on a grid of 16.
const paths = {
  overview: "M2 13V9m4 4V3m4 10V6m4 7v-2",
  runs: "M3 4h10M3 8h10M3 12h6",
  test: "M5 3l8 5-8 5z",
  batches: "M2.5 5.5L8 3l5.5 2.5L8 8zM2.5 8.5L8 11l5.5-2.5M2.5 11L8 13.5 13.5 11",
  queues: "M2 4h12v3H2zM2 9h8v3H2z",
  limits: "M2.500 12a6 6 0 1 1 11 0M8 9.500l3-3.500M8 9.500h.01",
  schedules: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.2l2 1.3",
  waitpoints: "M5 2h6M5 14h6M5.5 2v2.5L8 8l2.5-3.5V2M5.5 14v-2.5L8 8l2.5 3.5V14",
  variables: "M5 3C3 3 4 7 2 8c2 1 1 5 3 5M11 3c2 0 1 4 3 5-2 1-1 5-3 5",
  deployments: "M8 10V2M5 5l3-3 3 3M3 9v4h10V9",
  workers: "M4.5 4.5h7v7h-7zM6.5 2v2.5m3-2.5v2.5m-3 7V14m3-2.5V14M2 6.5h2.5m-2.5 3h2.5m7-3H14m-2.5 3H14",
  tokens: "M9.5 9A3.5 3.5 0 1 0 7 6.5L2.5 11v2.5H5V12h1.5v-1.5H8z",
  gateways: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  close: "M4 4l8 8M12 4l-8 8",
  check: "M3 8.5l3.5 3.5L13 4.5",
  chevron: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  columns: "M2 3h12v10H2zM6 3v10M10 3v10",
  user: "M8 8a2.700 2.700 0 1 0 0-5.400A2.700 2.700 0 0 0 8 8zM2.800 13.500c.7-2.400 2.700-3.700 5.200-3.700s4.500 1.300 5.200 3.700",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  plus: "M8 3v10M3 8h10",
  replay: "M3 8a5 5 0 1 0 1.6-3.7M3 2.5v3h3",
  stop: "M4 4h8v8H4z",
  pause: "M5.5 3v10M10.5 3v10",
  menu: "M2 4h12M2 8h12M2 12h12",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.6l.7-.7M11.900 4.100l.7-.7",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  screen: "M2 3h12v8H2zM6 14h4",
  out: "M6 3H3v10h3M10 5l3 3-3 3M13 8H6",
  keyboard: "M1.5 4h13v8h-13zM4 9.5h8M4 6.5h.01M6.7 6.5h.01M9.400 6.5h.01M12 6.5h.01",
  more: "M3.300 8h.4M7.800 8h.4M12.300 8h.4",
  link: "M7 4.5L8.5 3A3 3 0 0 1 13 7.5L11.5 9M9 11.5L7.5 13A3 3 0 0 1 3 8.5L4.5 7M6 10l4-4",
  edit: "M3 13l.7-3L10.5 3.200l2.300 2.300L6 12.300z",
  trash: "M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.5 8.5h6l.5-8.5",
};

export function Icon({ name, size = 16 }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
