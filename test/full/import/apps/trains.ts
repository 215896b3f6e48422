import { fromPath, overview } from 'portico';
import { rows } from '../generated/trains.ts';

export { rows };

export const overviews = [
  overview(
    '/bff/v1/bookings/:id/overview',
    {
      booking: { read: rows.getBooking, params: { bookingId: fromPath('id') }, required: true },
      stations: { read: rows.getStations },
    },
    ({ booking, stations }) => ({ who: booking.passenger_name, stations: stations?.data?.map(({ name }) => name) }),
  ),
];
