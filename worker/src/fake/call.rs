//! The calls of a host, so that a test can make some of them fail.

/// The calls that the filter makes, and that can be made to fail.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Clock,
    Property,
    HeaderValue,
    HeaderPairs,
    LocalResponse,
    DefineMetric,
    IncrementMetric,
    RecordMetric,
    GetMetric,
    GetSharedData,
    SetSharedData,
    BufferBytes,
    TickPeriod,
    Log,
}

impl Call {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock_time_get",
            Self::Property => "proxy_get_property",
            Self::HeaderValue => "proxy_get_header_map_value",
            Self::HeaderPairs => "proxy_get_header_map_pairs",
            Self::LocalResponse => "proxy_send_local_response",
            Self::DefineMetric => "proxy_define_metric",
            Self::IncrementMetric => "proxy_increment_metric",
            Self::RecordMetric => "proxy_record_metric",
            Self::GetMetric => "proxy_get_metric",
            Self::GetSharedData => "proxy_get_shared_data",
            Self::SetSharedData => "proxy_set_shared_data",
            Self::BufferBytes => "proxy_get_buffer_bytes",
            Self::TickPeriod => "proxy_set_tick_period_milliseconds",
            Self::Log => "proxy_log",
        }
    }
}
